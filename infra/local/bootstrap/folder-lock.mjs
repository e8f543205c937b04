import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { removeAtExit } from './exit-cleanup.mjs';
import { SetupError } from './setup-error.mjs';

const POLL_MS = 200;
/** A build of nats-server takes a minute on two cores. After ten times that, the holder counts as hung. */
const WAIT_MS_MAX = 10 * 60 * 1000;
/** A lock without a pid is stale after this time: its creator was killed between two system calls. */
const PIDLESS_MS_MAX = 2000;

/** Locks of this process. @type {Set<string>} */
const held = new Set();

/**
 * Runs `work` while holding the folder `path` as a lock (mkdir is atomic). Takes over the lock of an ended process.
 * @template T @param {string} path @param {() => Promise<T>} work @returns {Promise<T>}
 */
export async function withFolderLock(path, work, { waitMsMax = WAIT_MS_MAX, isAlive = isProcessAlive } = {}) {
  mkdirSync(dirname(path), { recursive: true });
  const deadline = performance.now() + waitMsMax;
  while (!tryLock(path)) {
    if (isStale(path, isAlive)) removeStale(path);
    else if (performance.now() > deadline) {
      throw new SetupError(
        `another set-up has held ${path} for ${Math.round(waitMsMax / 1000)} s; end it or remove that folder, then run the command again`,
      );
    } else await sleep(POLL_MS);
  }
  held.add(path);
  const release = removeAtExit(path);
  try {
    return await work();
  } finally {
    release();
    held.delete(path);
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
    // After a restart of a container, a process may have the id of the previous one.
    if (pid === process.pid) return !held.has(path);
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
  // Renamed first: only one of two processes succeeds, so a new lock is never removed.
  const moved = `${path}.stale-${process.pid}`;
  try {
    renameSync(path, moved);
    rmSync(moved, { recursive: true, force: true });
  } catch {
    // Another process moved it first.
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
