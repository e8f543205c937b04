import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isAlive, shellQuoted } from '@hopline/local-cluster';
import { LaunchError } from './launch-error.ts';
import { commandLine, startedAt } from './process-identity.ts';

/**
 * The process that holds a home. `command` and `startedAt` distinguish it from a later process with the same id; after a restart of a
 * container, only `startedAt` does. Older versions wrote neither.
 */
type Holder = { pid: number; command: string; startedAt?: string; url: string };

const ATTEMPTS_MAX = 5;

/**
 * Locks the home for this process. Takes over the lock of a process that no longer runs.
 * @returns a function that releases the lock; @throws LaunchError that names the holder.
 */
export function lockHome(path: string, url: string): () => void {
  const { pid } = process;
  const mine = JSON.stringify({ pid, command: commandLine(pid), startedAt: startedAt(pid), url } satisfies Holder);
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    if (tryCreate(path, mine)) return () => release(path, mine);
    const found = readText(path);
    const holder = found === null ? null : parseHolder(found);
    if (holder && holds(holder)) throw alreadyRuns(path, holder);
    if (found !== null) removeStale(path, found);
  }
  throw new LaunchError(`the lock ${path} keeps changing: another start with this home is in progress; wait for it`);
}

/** Creates the lock together with its content in one step, so that a reader never finds it empty. */
function tryCreate(path: string, content: string): boolean {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, content);
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function parseHolder(text: string): Holder | null {
  try {
    const { pid, command, startedAt, url } = JSON.parse(text);
    const start = typeof startedAt === 'string' ? { startedAt } : {};
    return Number.isInteger(pid) && pid > 0 ? { pid, command: String(command), ...start, url: String(url) } : null;
  } catch {
    return null;
  }
}

function holds({ pid, command, startedAt: started = startedAt(pid) }: Holder): boolean {
  return isAlive(pid) && commandLine(pid) === command && startedAt(pid) === started;
}

/** Renames before it removes: if another start has already replaced the lock, the new one is restored. */
function removeStale(path: string, stale: string): void {
  const moved = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, moved);
    if (readText(moved) !== stale) linkSync(moved, path);
  } catch {
    // Another process moved it at the same time; the next attempt checks again.
  } finally {
    rmSync(moved, { force: true });
  }
}

function release(path: string, mine: string): void {
  if (readText(path) === mine) rmSync(path, { force: true });
}

function alreadyRuns(path: string, { pid, url }: Holder): LaunchError {
  const home = path.replace(/\/[^/]*$/, '');
  return new LaunchError(
    `Hopline is already running in ${home} (${url}, process ${pid}); stop it, or start a second cluster: HOPLINE_HOME=${shellQuoted(`${home}-2`)} npm start -- --port 8001`,
  );
}
