import type { ServerResponse } from 'node:http';
import { SSE_CONTENT_TYPE, sseComment } from '@hopline/a2a';
import { PacedWriter } from '@hopline/a2a-server';

/** One open event stream. */
export class SseStream {
  readonly #response: ServerResponse;
  readonly #writer: PacedWriter;
  readonly #stallMs: number;
  #written = 0;

  /** `stallMs`: a client that takes nothing for so long after the end is cut; until then the door looks after it. Milliseconds. */
  constructor(response: ServerResponse, stallMs: number) {
    this.#response = response;
    this.#stallMs = stallMs;
    this.#writer = new PacedWriter(response);
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
    return this.#writer.closed;
  }

  get backlog(): number {
    return this.#writer.backlog;
  }

  /** UTF-16 units sent so far; about the bytes of a text in Latin script. */
  get written(): number {
    return this.#written;
  }

  /** Text that stands alone: whole frames, or a comment. Left out while a larger text is on its way. */
  send(text: string): void {
    if (this.#writer.send(text)) this.#written += text.length;
  }

  /** Sends whole frames as fast as the client takes them. Resolves with false when it has gone, or took nothing for `stallMs`. */
  sendAll(text: string, stallMs: number): Promise<boolean> {
    this.#written += text.length;
    return this.#writer.sendAll(Buffer.from(text), stallMs);
  }

  /** Ends with a last text. In the middle of a larger one there is no clean end: the connection is cut. */
  end(text = ''): void {
    if (this.closed) return;
    if (this.#writer.slicing) {
      this.cut();
      return;
    }
    this.#written += text.length;
    this.#response.setTimeout(this.#stallMs);
    this.#response.end(text);
  }

  /** Drops the connection with everything that waits for it. */
  cut(): void {
    this.#response.destroy();
  }

  /** Calls back once when the stream is over, also when it was over before. */
  onClose(listener: () => void): void {
    this.#writer.onClose(listener);
  }
}
