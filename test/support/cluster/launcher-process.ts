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

/** Starts the launcher with its home in `folder` and any free port. */
export function spawnLauncher(
  folder: string,
  args: readonly string[],
  variables: Record<string, string> = {},
): ChildProcessByStdio<null, Readable, null> {
  const { TEST_SERVICES } = process.env;
  const hook = TEST_SERVICES === undefined ? [] : ['--import', `data:text/javascript,${encodeURIComponent(USE_BUNDLES)}`];
  return spawn(process.execPath, [...hook, LAUNCHER, '--port', '0', ...args], {
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      ...compileCache(),
      ...(TEST_SERVICES !== undefined && { TEST_SERVICES }),
      HOPLINE_HOME: join(folder, 'home'),
      HOPLINE_NATS_SERVER: process.env.HOPLINE_NATS_SERVER ?? 'nats-server',
      ...variables,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}
