import { closeSync, copyFileSync, fstatSync, openSync, readSync, statSync, truncateSync } from 'node:fs';

const LOG_BYTES_MAX = 20 * 1024 * 1024;
const TAIL_BYTES = 8 * 1024;
const LINE_CHARS_MAX = 400;

/** A descriptor that appends to the log; it is handed to the process itself, so that no byte passes through the launcher. */
export function openLog(path: string): number {
  return openSync(path, 'a', 0o600);
}

/**
 * Moves the content to `<path>.1` when the log has grown over its limit (so at most two files of that size stay). The process
 * keeps its descriptor, which appends: it goes on at the start of the emptied file. What it writes between the two calls is lost.
 */
export function boundLog(path: string, bytesMax = LOG_BYTES_MAX): void {
  try {
    if (statSync(path).size <= bytesMax) return;
    copyFileSync(path, `${path}.1`);
    truncateSync(path);
  } catch {
    // No log yet, or no room for the copy: the next round tries again.
  }
}

/** The last line of a log, shortened; "" when there is none. */
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
