import type { Writable } from 'node:stream';

/** Bytes per write of a large message. Larger writes would hide for minutes whether a slow client reads anything. */
const SLICE_BYTES = 64 * 1024;

/**
 * Writes a large message to a response in slices, at the pace of the client. Nothing else may be written in between. A Readable would add a
 * second buffer and hide how much the client has not read, which decides whether the client is too slow. Resolves with false when the
 * client has disconnected, or read nothing for `stallMs`.
 */
export async function writePaced(response: Writable, bytes: Uint8Array, stallMs: number): Promise<boolean> {
  for (let at = 0; at < bytes.length && !isClosed(response); at += SLICE_BYTES) {
    response.write(bytes.subarray(at, at + SLICE_BYTES));
    if (!(await drained(response, stallMs))) return false;
  }
  return !isClosed(response);
}

/** Calls `listener` once when the response ends, or soon if it has already ended. */
export function onResponseClose(response: Writable, listener: () => void): void {
  if (response.destroyed) queueMicrotask(listener);
  // `close` is emitted only once anyway, and `once` would add a wrapper of 200 bytes.
  else response.on('close', listener);
}

/** Ignores errors of a response. A connection reset by the client is not a fault of the server, and `close` follows. */
export function ignoreErrors(response: Writable): void {
  response.on('error', () => {});
}

function isClosed(response: Writable): boolean {
  return response.destroyed || response.writableEnded;
}

/** Resolves with true when there is room again, with false when the client has disconnected or read nothing in time. */
async function drained(response: Writable, stallMs: number): Promise<boolean> {
  while (!isClosed(response) && response.writableNeedDrain) {
    const before = response.writableLength;
    await changeOf(response, stallMs);
    if (response.writableNeedDrain && response.writableLength >= before) return false;
  }
  return !isClosed(response);
}

function changeOf(response: Writable, withinMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = () => {
    clearTimeout(timer);
    response.off('drain', done).off('close', done);
    resolve();
  };
  const timer = setTimeout(done, withinMs);
  response.on('drain', done).on('close', done);
  return promise;
}
