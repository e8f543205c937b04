import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { NODE_MIN } from '../../infra/release/public-packages.ts';

const run = promisify(execFile);
/** 25 MB compressed. */
const INSTALL_MS_MAX = 120_000;
/** The first release that NODE_MIN allows. */
const VERSION = `${NODE_MIN.replace('>=', '')}.0`;

/**
 * Path of the lowest Node version that the public packages declare. npm installs it in the folder of the other tools; otherwise a newer one
 * of the same major release on PATH is used. Undefined if there is neither.
 */
export async function lowestNode(): Promise<string | undefined> {
  return (await fromNpm().catch(() => undefined)) ?? (await onPath());
}

/** Why a test is not run on the lowest Node. */
export const NO_LOWEST_NODE = `no Node ${VERSION}: npm has none for this machine or cannot be reached, and PATH has none of its major release`;

async function fromNpm(): Promise<string> {
  const name = `node-${process.platform}-${process.arch}`;
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'hopline');
  const folder = join(cache, `${name}-${VERSION}`);
  const node = join(folder, 'node_modules', name, 'bin', 'node');
  if (!existsSync(node)) {
    await mkdir(cache, { recursive: true });
    const part = await mkdtemp(join(cache, '.part-'));
    try {
      await writeFile(join(part, 'package.json'), '{"private":true}');
      const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--fetch-retries=1'];
      await run('npm', ['install', ...flags, `${name}@${VERSION}`], { cwd: part, timeout: INSTALL_MS_MAX });
      // Removes the headers, which take 60 MB.
      await rm(join(part, 'node_modules', name, 'include'), { recursive: true, force: true });
      // Another test may have installed it first.
      await rename(part, folder).catch(() => {});
    } finally {
      await rm(part, { recursive: true, force: true });
    }
  }
  return (await isMajor(node)) ? node : Promise.reject(new Error(`${node} does not run`));
}

async function onPath(): Promise<string | undefined> {
  for (const path of (process.env.PATH ?? '').split(delimiter)) if (await isMajor(join(path, 'node'))) return join(path, 'node');
  return undefined;
}

async function isMajor(node: string): Promise<boolean> {
  const found = await run(node, ['--version']).catch(() => undefined);
  return found?.stdout.split('.')[0] === `v${VERSION.split('.')[0]}`;
}
