import type { Writable } from 'node:stream';

/** Bytes of a large write that are written at a time; what is larger hides for minutes whether a slow client takes anything at all. */
const SLICE_BYTES = 64 * 1024;

/**
 * What goes out on one response. Writes to the response itself: a Readable between them costs a second buffer and hides how much the client has not taken yet,
 * which is the figure that decides whether it is too slow.
 */
export class PacedWriter {
  readonly #response: Writable;
  /** Something large is on its way in slices: nothing else may get between them. */
  #slicing = false;

  constructor(response: Writable) {
    this.#response = response;
    // A client that resets the connection is no fault of ours (S2-35); `close` follows and says all there is to say.
    response.on('error', () => {});
  }

  get closed(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  /** In the middle of something large there is no clean end. */
  get slicing(): boolean {
    return this.#slicing;
  }

  /** Bytes that the client has not taken yet, beyond what the kernel holds. */
  get backlog(): number {
    return this.#response.writableLength;
  }

  /** What stands alone: whole frames. Returns false, and writes nothing, when it is over or while something larger is on its way. */
  send(chunk: string | Uint8Array): boolean {
    if (this.closed || this.#slicing) return false;
    this.#response.write(chunk);
    return true;
  }

  /** Sends whole frames as fast as the client takes them. Resolves with false when it has gone, or took nothing for `stallMs`. */
  async sendAll(bytes: Uint8Array, stallMs: number): Promise<boolean> {
    this.#slicing = true;
    for (let at = 0; at < bytes.length && !this.closed; at += SLICE_BYTES) {
      this.#response.write(bytes.subarray(at, at + SLICE_BYTES));
      if (!(await this.#drained(stallMs))) return false;
    }
    this.#slicing = false;
    return !this.closed;
  }

  /** Calls back once when the response is over, also when it was over before. */
  onClose(listener: () => void): void {
    if (this.#response.destroyed) queueMicrotask(listener);
    else this.#response.once('close', listener);
  }

  /** Resolves with true when there is room again, with false when the client has gone or took nothing in time. */
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
