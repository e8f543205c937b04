import type { Writable } from 'node:stream';

/** Bytes per write of a large message. Larger writes would hide for minutes whether a slow client reads anything. */
const SLICE_BYTES = 64 * 1024;

/**
 * Writes one response directly: a Readable in between would add a second buffer and hide how much the client has not read,
 * which decides whether it is too slow.
 */
export class PacedWriter {
  readonly #response: Writable;
  /** A large message is being written in slices; nothing else may be written in between. */
  #slicing = false;

  constructor(response: Writable) {
    this.#response = response;
    // A connection reset by the client is not a server fault; 'close' follows.
    response.on('error', () => {});
  }

  get closed(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  /** True in the middle of a large message: the response cannot end cleanly. */
  get slicing(): boolean {
    return this.#slicing;
  }

  /** Bytes that the client has not read yet, beyond what the kernel buffers. */
  get backlog(): number {
    return this.#response.writableLength;
  }

  /** Writes whole frames. Returns false, writing nothing, when the response has ended or a large message is being written. */
  send(chunk: string | Uint8Array): boolean {
    if (this.closed || this.#slicing) return false;
    this.#response.write(chunk);
    return true;
  }

  /**
   * Writes whole frames at the pace of the client. Resolves with false when the client has disconnected, or read nothing for
   * `stallMs`.
   */
  async sendAll(bytes: Uint8Array, stallMs: number): Promise<boolean> {
    this.#slicing = true;
    for (let at = 0; at < bytes.length && !this.closed; at += SLICE_BYTES) {
      this.#response.write(bytes.subarray(at, at + SLICE_BYTES));
      if (!(await this.#drained(stallMs))) return false;
    }
    this.#slicing = false;
    return !this.closed;
  }

  /** Calls `listener` once when the response ends, or at once if it has already ended. */
  onClose(listener: () => void): void {
    if (this.#response.destroyed) queueMicrotask(listener);
    // `close` is emitted only once anyway, and `once` would keep a wrapper of 200 bytes.
    else this.#response.on('close', listener);
  }

  /** Resolves with true when there is room again, with false when the client has disconnected or read nothing in time. */
  async #drained(stallMs: number): Promise<boolean> {
    while (!this.closed && this.#response.writableNeedDrain) {
      const before = this.backlog;
      await this.#change(stallMs);
      if (this.#response.writableNeedDrain && this.backlog >= before) return false;
    }
    return !this.closed;
  }

  #change(withinMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = () => {
      clearTimeout(timer);
      this.#response.off('drain', done).off('close', done);
      resolve();
    };
    const timer = setTimeout(done, withinMs);
    this.#response.on('drain', done).on('close', done);
    return promise;
  }
}
