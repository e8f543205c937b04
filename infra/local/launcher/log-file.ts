import { closeSync, copyFileSync, fstatSync, openSync, readSync, statSync, truncateSync } from 'node:fs';

const LOG_BYTES_MAX = 20 * 1024 * 1024;
const TAIL_BYTES = 8 * 1024;
const LINE_CHARS_MAX = 400;

/** Opens the log for appending. The process writes to the descriptor itself, without passing through the launcher. */
export function openLog(path: string): number {
  return openSync(path, 'a', 0o600);
}

/**
 * Moves the content of an oversized log to `<path>.1`, so that at most two files of that size remain. The process keeps its
 * appending
 * descriptor and continues at the start of the emptied file. Lines written between the two calls are lost.
 */
export function boundLog(path: string, bytesMax = LOG_BYTES_MAX): void {
  try {
    if (statSync(path).size <= bytesMax) return;
    copyFileSync(path, `${path}.1`);
    truncateSync(path);
  } catch {
    // No log yet, or no space for the copy: the next check tries again.
  }
}

/** The last line of a log, truncated; "" for an empty log. */
export function lastLogLine(path: string): string {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return '';
  }
  try {
    const { size } = fstatSync(file);
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
    readSync(file, tail, 0, tail.length, size - tail.length);
    return (tail.toString('utf8').trimEnd().split('\n').at(-1) ?? '').slice(0, LINE_CHARS_MAX);
  } finally {
    closeSync(file);
  }
}
