import { dirname, join } from 'node:path';
import { failureLine, runCommand } from './command.mjs';
import { withFolderLock } from './folder-lock.mjs';
import { explain, isNetworkFault } from './npm-package.mjs';
import { SetupError } from './setup-error.mjs';
import { isSetUp, markSetUp } from './setup-stamp.mjs';

const INSTALL_MS_MAX = 10 * 60 * 1000;
const INSTALL_FLAGS = [
  '--frozen-lockfile',
  '--prefer-offline',
  '--reporter=append-only',
  // Otherwise pnpm asks before it replaces a node_modules of another package manager.
  '--config.confirmModulesPurge=false',
  // With its defaults pnpm 12.21 takes eight minutes to detect a missing network.
  '--config.fetchRetries=2',
  '--config.fetchRetryMintimeout=1000',
  '--config.fetchRetryMaxtimeout=3000',
];

/**
 * Installs the locked packages of the workspace, unless node_modules is complete for `key`.
 * @param {string} root @param {string} key
 * @param {{ node: string, pnpm: () => Promise<string[]>, env: NodeJS.ProcessEnv, progress: ReturnType<import('./progress.mjs').createProgress> }} tools
 */
export async function ensurePackages(root, key, { node, pnpm, env, progress }) {
  if (isSetUp(root, key)) return;
  const command = await pnpm();
  await withFolderLock(join(root, 'node_modules', '.hopline-set-up-lock'), async () => {
    if (isSetUp(root, key)) return;
    await progress.step('installing the locked packages', () =>
      install(root, command, { ...env, PATH: `${dirname(node)}:${env.PATH}` }),
    );
    markSetUp(root, key);
  });
}

async function install(root, pnpm, env) {
  const result = await runCommand([...pnpm, 'install', ...INSTALL_FLAGS], { cwd: root, env, timeoutMs: INSTALL_MS_MAX });
  if (result.ok) return;
  const text = result.stderr + result.stdout;
  if (text.includes('ERR_PNPM_OUTDATED_LOCKFILE')) {
    throw new SetupError(
      `pnpm-lock.yaml does not match the package.json files; run \`${pnpm.join(' ')} install\` and commit the lockfile`,
    );
  }
  if (result.timedOut || isNetworkFault(text)) throw new SetupError(explain('the locked packages', result));
  throw new SetupError(`installing the locked packages failed (${failureLine(result)}); fix this and run the command again`);
}
