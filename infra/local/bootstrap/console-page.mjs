import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { failureLine, runCommand } from './command.mjs';
import { withFolderLock } from './folder-lock.mjs';
import { SetupError } from './setup-error.mjs';

const BUILD_MS_MAX = 2 * 60 * 1000;
const STAMP = 'services/console/dist/.built';
/** Sources of the page: its own, and the folders that they import from. */
const SOURCES = [
  'services/console/app',
  'services/console/vite.config.ts',
  'packages/a2a/src',
  'packages/client/src',
  'packages/events/src',
  'packages/log/src',
  'packages/replay/src',
  'packages/task/src',
  'packages/task-audit/src',
  'packages/task-file/src',
  'pnpm-lock.yaml',
];

/**
 * Builds the page of the console, unless it was already built from these sources.
 * @param {string} root
 * @param {{ node: string, env: NodeJS.ProcessEnv, progress: ReturnType<import('./progress.mjs').createProgress> }} tools
 */
export async function ensureConsolePage(root, { node, env, progress }) {
  const key = pageKey(root);
  if (isBuilt(root, key)) return;
  await withFolderLock(join(root, 'node_modules', '.hopline-console-lock'), async () => {
    if (isBuilt(root, key)) return;
    await progress.step('building the page of the console', () => build(root, node, env));
    writeFileSync(join(root, STAMP), key);
  });
}

/** A hash of the sources of the page. @param {string} root @returns {string} hex */
export function pageKey(root) {
  const hash = createHash('sha256');
  for (const source of SOURCES) {
    for (const path of filesOf(join(root, source))) hash.update(`${path.slice(root.length)}\n`).update(readFileSync(path));
  }
  return hash.digest('hex');
}

function filesOf(path) {
  if (!existsSync(path)) return [];
  if (/\.\w+$/.test(path)) return [path];
  // Entries with types lack the folder they are in before Node 20.12.
  return readdirSync(path, { recursive: true })
    .map(name => join(path, name))
    .filter(file => statSync(file).isFile())
    .sort();
}

function isBuilt(root, key) {
  return existsSync(join(root, STAMP)) && readFileSync(join(root, STAMP), 'utf8') === key;
}

async function build(root, node, env) {
  const folder = join(root, 'services/console');
  const vite = join(folder, 'node_modules/vite/bin/vite.js');
  for (const mode of ['production', 'file']) {
    const command = [node, vite, 'build', '--mode', mode, '--logLevel', 'warn'];
    const result = await runCommand(command, { cwd: folder, env, timeoutMs: BUILD_MS_MAX });
    if (result.ok) continue;
    throw new SetupError(`the page of the console was not built (${failureLine(result)}); run the command again`);
  }
}
