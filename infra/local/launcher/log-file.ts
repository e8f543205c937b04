import { closeSync, copyFileSync, fstatSync, openSync, readSync, statSync, truncateSync } from 'node:fs';

const LOG_BYTES_MAX = 20 * 1024 * 1024;
const TAIL_BYTES = 8 * 1024;
const FAULT_CHARS_MAX = 1000;
const FAULT_LINES_MAX = 12;
const STACK_FRAME = /^\s+at /;

/** Opens the log for appending. The process writes to the descriptor itself, without passing through the launcher. */
export function openLog(path: string): number {
  return openSync(path, 'a', 0o600);
}

/**
 * Moves the content of an oversized log to `<path>.1`, so that at most two files of that size remain. The process keeps its
 * appending descriptor and continues at the start of the emptied file. Lines written between the two calls are lost.
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

/** Size of the log; 0 if there is none. A process that starts now writes from this offset on. */
export function logSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Why a process ended, according to its output since `from`: its last lines of plain text without stack frames, or the message
 * of its last JSON line. "" if it wrote nothing.
 */
export function faultInLog(path: string, from = 0): string {
  const lines = readTail(path, from).trimEnd().split('\n');
  const last = lines.at(-1) ?? '';
  const json = messageOfJson(last);
  if (json !== undefined) return json.slice(0, FAULT_CHARS_MAX);
  const begin = lines.findLastIndex(line => line.startsWith('{')) + 1;
  const text = lines.slice(begin).filter(line => !STACK_FRAME.test(line) && line.trim() !== '');
  return text.slice(-FAULT_LINES_MAX).join('\n').slice(0, FAULT_CHARS_MAX);
}

function messageOfJson(line: string): string | undefined {
  try {
    const { msg, err } = JSON.parse(line) as { msg?: unknown; err?: { message?: unknown } };
    return [msg, err?.message].filter(text => typeof text === 'string').join(': ');
  } catch {
    return undefined;
  }
}

function readTail(path: string, from: number): string {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return '';
  }
  try {
    const { size } = fstatSync(file);
    // The log is shorter than `from` if it was moved in the meantime.
    const begin = Math.max(from <= size ? from : 0, size - TAIL_BYTES);
    const tail = Buffer.alloc(size - begin);
    readSync(file, tail, 0, tail.length, begin);
    return tail.toString('utf8');
  } finally {
    closeSync(file);
  }
}
