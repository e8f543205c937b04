import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { removeAtExit } from './exit-cleanup.mjs';
import { withFolderLock } from './folder-lock.mjs';

const ABANDONED_MS = 24 * 60 * 60 * 1000;
const TEMPORARY_PREFIX = '.part-';

/**
 * The folder for tools: one per user, so that a second clone is fast; in the checkout if that is not writable.
 * @param {string} root the checkout @param {NodeJS.ProcessEnv} env @returns {string}
 */
export function toolCacheFolder(root, env) {
  const base = env.XDG_CACHE_HOME && isAbsolute(env.XDG_CACHE_HOME) ? env.XDG_CACHE_HOME : join(env.HOME || homedir(), '.cache');
  const perUser = join(base, 'hopline');
  return isWritable(perUser) ? perUser : join(root, '.hopline', 'tools');
}

function isWritable(folder) {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * The cached folder `name`, filled by `fill` if it is missing. A rename makes it appear complete or not at all.
 * @param {string} cache @param {string} name @param {(folder: string) => Promise<void>} fill
 * @returns {Promise<string>} the folder
 */
export async function cachedFolder(cache, name, fill) {
  const target = join(cache, name);
  if (existsSync(target)) return target;
  return withFolderLock(join(cache, `.lock-${name}`), async () => {
    if (existsSync(target)) return target;
    removeAbandoned(cache);
    const part = mkdtempSync(join(cache, TEMPORARY_PREFIX));
    const discard = removeAtExit(part);
    try {
      await fill(part);
      renameSync(part, target);
    } finally {
      discard();
    }
    return target;
  });
}

/** Removes temporary folders of set-ups that were killed. */
function removeAbandoned(cache) {
  for (const name of readdirSync(cache)) {
    if (!name.startsWith(TEMPORARY_PREFIX)) continue;
    const path = join(cache, name);
    try {
      if (Date.now() - statSync(path).mtimeMs > ABANDONED_MS) rmSync(path, { recursive: true, force: true });
    } catch {
      // Its owner removed it at the same time.
    }
  }
}
