import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { compileCache } from '../../kit/compile-cache.ts';

const LAUNCHER = fileURLToPath(new URL('../../../infra/local/launcher/main.ts', import.meta.url));
const BUNDLED = new URL('bundled-installation.ts', import.meta.url);

/**
 * Makes the launcher of the checkout start the bundles of this run. From source, the services of one cluster take half a CPU second more each; the
 * launcher's own tests run them so.
 */
const USE_BUNDLES = `import { registerHooks } from 'node:module';
  registerHooks({ resolve: (name, context, next) => name === './installation.ts' ? { url: '${BUNDLED}', shortCircuit: true } : next(name, context) });`;

/** Node's arguments that run the launcher, with the bundles of this run if there are any. It needs their folder, TEST_SERVICES, in its environment. */
export function launcherProgram(): string[] {
  const hook =
    process.env.TEST_SERVICES === undefined ? [] : ['--import', `data:text/javascript,${encodeURIComponent(USE_BUNDLES)}`];
  return [...hook, LAUNCHER];
}

/** Variables of a program that finds the bundles of this run. */
export function bundlesOfRun(): { TEST_SERVICES?: string } {
  const { TEST_SERVICES } = process.env;
  return TEST_SERVICES === undefined ? {} : { TEST_SERVICES };
}

/** Starts the launcher with its home in `folder` and any free port. */
export function spawnLauncher(
  folder: string,
  args: readonly string[],
  variables: Record<string, string> = {},
): ChildProcessByStdio<null, Readable, null> {
  return spawn(process.execPath, [...launcherProgram(), '--port', '0', ...args], {
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      ...compileCache(),
      ...bundlesOfRun(),
      HOPLINE_HOME: join(folder, 'home'),
      HOPLINE_NATS_SERVER: process.env.HOPLINE_NATS_SERVER ?? 'nats-server',
      ...variables,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}
