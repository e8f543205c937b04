import type { ServerResponse } from 'node:http';
import { SSE_CONTENT_TYPE, sseComment } from '@hopline/a2a';

/** Bytes of a large text that are written at a time; what is larger hides for minutes whether a slow client takes anything at all. */
const SLICE_BYTES = 64 * 1024;

/**
 * One open event stream. Writes to the response itself: a Readable between them costs a second buffer and hides how much the client has not taken yet,
 * which is the figure that decides whether it is too slow.
 */
export class SseStream {
  readonly #response: ServerResponse;
  #written = 0;
  /** A text is on its way in slices: nothing else may get between them. */
  #slicing = false;

  constructor(response: ServerResponse) {
    this.#response = response;
    // A client that resets the connection is no fault of ours (S2-35); `close` follows and says all there is to say.
    response.on('error', () => {});
  }

  /** Sends the headers and a comment at once, before anything is known of the task (S0-2, S3-14). */
  open(headers: Record<string, string | number | string[] | undefined>): void {
    const defined = Object.entries(headers).filter(([, value]) => value !== undefined) as [string, string][];
    this.#response.writeHead(200, {
      ...Object.fromEntries(defined),
      'content-type': `${SSE_CONTENT_TYPE}; charset=utf-8`,
      'cache-control': 'no-cache, no-transform',
      // nginx buffers whole responses otherwise.
      'x-accel-buffering': 'no',
    });
    this.send(sseComment('ok'));
  }

  get closed(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  /** Bytes that the client has not taken yet, beyond what the kernel holds. */
  get backlog(): number {
    return this.#response.writableLength;
  }

  /** UTF-16 units sent so far; about the bytes of a text in Latin script. */
  get written(): number {
    return this.#written;
  }

  /** Text that stands alone: whole frames, or a comment. Left out while a larger text is on its way. */
  send(text: string): void {
    if (this.closed || this.#slicing) return;
    this.#written += text.length;
    this.#response.write(text);
  }

  /** Sends whole frames as fast as the client takes them. Resolves with false when it has gone, or took nothing for `stallMs`. */
  async sendAll(text: string, stallMs: number): Promise<boolean> {
    const bytes = Buffer.from(text);
    this.#written += text.length;
    this.#slicing = true;
    for (let at = 0; at < bytes.length && !this.closed; at += SLICE_BYTES) {
      this.#response.write(bytes.subarray(at, at + SLICE_BYTES));
      if (!(await this.#drained(stallMs))) return false;
    }
    this.#slicing = false;
    return !this.closed;
  }

  /** Ends with a last text. In the middle of a larger one there is no clean end: the connection is cut. */
  end(text = ''): void {
    if (this.closed) return;
    if (this.#slicing) {
      this.cut();
      return;
    }
    this.#written += text.length;
    this.#response.end(text);
  }

  /** Drops the connection with everything that waits for it. */
  cut(): void {
    this.#response.destroy();
  }

  /** Calls back once when the stream is over, also when it was over before. */
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
