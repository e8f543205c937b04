import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { removeAtExit } from './exit-cleanup.mjs';
import { SetupError } from './setup-error.mjs';

const POLL_MS = 200;
/** A build of nats-server takes a minute on two cores; ten times that means the holder hangs. */
const WAIT_MS_MAX = 10 * 60 * 1000;
/** A lock folder without a pid in it: its maker was killed between two system calls, or is just now writing it. */
const PIDLESS_MS_MAX = 2000;

/**
 * Runs `work` while holding the folder `path` (mkdir is atomic). A lock whose process is gone is taken over.
 * @template T @param {string} path @param {() => Promise<T>} work @returns {Promise<T>}
 */
export async function withFolderLock(path, work, { waitMsMax = WAIT_MS_MAX, isAlive = isProcessAlive } = {}) {
  mkdirSync(dirname(path), { recursive: true });
  const deadline = Date.now() + waitMsMax;
  while (!tryLock(path)) {
    if (isStale(path, isAlive)) removeStale(path);
    else if (Date.now() > deadline) {
      throw new SetupError(
        `Another set-up has held ${path} for ${Math.round(waitMsMax / 1000)} s; end it, or remove that folder, and run the command again.`,
      );
    } else await sleep(POLL_MS);
  }
  const release = removeAtExit(path);
  try {
    return await work();
  } finally {
    release();
  }
}

function tryLock(path) {
  try {
    mkdirSync(path);
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
  writeFileSync(join(path, 'pid'), String(process.pid));
  return true;
}

function isStale(path, isAlive) {
  try {
    const pid = Number(readFileSync(join(path, 'pid'), 'utf8'));
    if (pid > 0) return !isAlive(pid);
    return Date.now() - statSync(path).mtimeMs > PIDLESS_MS_MAX;
  } catch {
    const age = ageMs(path);
    return age !== null && age > PIDLESS_MS_MAX;
  }
}

function ageMs(path) {
  try {
    return Date.now() - statSync(path).mtimeMs;
  } catch {
    return null;
  }
}

function removeStale(path) {
  // Renamed first: of two processes that see the same stale lock only one wins the rename, so a fresh lock is never removed.
  const grave = `${path}.stale-${process.pid}`;
  try {
    renameSync(path, grave);
    rmSync(grave, { recursive: true, force: true });
  } catch {
    // Another process was faster.
  }
}

function isProcessAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
