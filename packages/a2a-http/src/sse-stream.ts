import type { ServerResponse } from 'node:http';
import { SSE_CONTENT_TYPE, sseComment } from '@hopline/a2a';
import { PacedWriter } from '@hopline/a2a-server';

/** One open event stream. */
export class SseStream {
  readonly #response: ServerResponse;
  readonly #writer: PacedWriter;
  readonly #stallMs: number;
  #written = 0;

  /**
   * `stallMs`: a client that reads nothing for this long after the end is cut; before that, the viewer checks it. Milliseconds.
   */
  constructor(response: ServerResponse, stallMs: number) {
    this.#response = response;
    this.#stallMs = stallMs;
    this.#writer = new PacedWriter(response);
  }

  /** Sends the headers and a comment at once, before any event exists (S0-2). */
  open(headers: Record<string, string | number | string[] | undefined>): void {
    const defined = Object.entries(headers).filter(([, value]) => value !== undefined) as [string, string][];
    this.#response.writeHead(200, {
      ...Object.fromEntries(defined),
      'content-type': `${SSE_CONTENT_TYPE}; charset=utf-8`,
      'cache-control': 'no-cache, no-transform',
      // nginx would buffer the whole response.
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

  /** UTF-16 units sent so far; about the bytes of Latin text. */
  get written(): number {
    return this.#written;
  }

  /** Writes whole frames or a comment. Skipped while a larger text is being written. */
  send(text: string): void {
    if (this.#writer.send(text)) this.#written += text.length;
  }

  /**
   * Writes whole frames at the pace of the client. Resolves with false when the client has disconnected, or read nothing for
   * `stallMs`.
   */
  sendAll(text: string, stallMs: number): Promise<boolean> {
    this.#written += text.length;
    return this.#writer.sendAll(Buffer.from(text), stallMs);
  }

  /** Ends with a last text. While a larger one is being written there is no clean end: the connection is cut. */
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

  /** Closes the connection and discards what is buffered for it. */
  cut(): void {
    this.#response.destroy();
  }

  /** Calls `listener` once when the stream ends, also when it has ended already. */
  onClose(listener: () => void): void {
    this.#writer.onClose(listener);
  }
}
