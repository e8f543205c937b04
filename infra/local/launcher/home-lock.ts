import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { LaunchError } from './launch-error.ts';
import { commandLine, isAlive } from './process-identity.ts';

/** Who holds a home. `command` is the holder's command line, kept to tell it from a later process with the same id. */
type Holder = { pid: number; command: string; url: string };

const ATTEMPTS_MAX = 5;

/**
 * Takes the home for this process. A lock whose holder is gone is taken over.
 * @returns what releases it; @throws LaunchError naming the holder.
 */
export function lockHome(path: string, url: string): () => void {
  const mine = JSON.stringify({ pid: process.pid, command: commandLine(process.pid), url } satisfies Holder);
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    if (tryCreate(path, mine)) return () => release(path, mine);
    const found = readText(path);
    const holder = found === null ? null : parseHolder(found);
    if (holder && holds(holder)) throw alreadyRuns(path, holder);
    if (found !== null) removeStale(path, found);
  }
  throw new LaunchError(`The lock ${path} changes hands all the time; another start is under way on this home, wait for it.`);
}

/** The lock appears with its content, in one step: a reader never sees it empty. */
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
    const { pid, command, url } = JSON.parse(text);
    return Number.isInteger(pid) && pid > 0 ? { pid, command: String(command), url: String(url) } : null;
  } catch {
    return null;
  }
}

function holds({ pid, command }: Holder): boolean {
  return isAlive(pid) && commandLine(pid) === command;
}

/** Renames before it removes: when another start was faster and the lock is already a fresh one, it is put back. */
function removeStale(path: string, stale: string): void {
  const grave = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, grave);
    if (readText(grave) !== stale) linkSync(grave, path);
  } catch {
    // Somebody else moved it in the same moment; the next attempt looks again.
  } finally {
    rmSync(grave, { force: true });
  }
}

function release(path: string, mine: string): void {
  if (readText(path) === mine) rmSync(path, { force: true });
}

function alreadyRuns(path: string, { pid, url }: Holder): LaunchError {
  const home = path.replace(/\/[^/]*$/, '');
  return new LaunchError(
    `Hopline already runs on the home ${home} (${url}, process ${pid}); stop that one, or start another cluster beside it: HOPLINE_HOME=${home}-2 npm start -- --port 8001`,
  );
}
