import type { ServerResponse } from 'node:http';
import { SSE_CONTENT_TYPE, sseComment } from '@hopline/a2a';
import { PacedWriter } from '@hopline/a2a-server';

/** Streams with text of this turn of the event loop. */
let waiting: SseStream[] = [];

function writeWaiting(): void {
  const streams = waiting;
  waiting = [];
  let chunk = NO_CHUNK;
  for (const stream of streams) chunk = stream.write(chunk);
}

/** A text and its bytes as a chunk of HTTP/1.1. */
type Chunk = { text: string; bytes: Buffer };
const NO_CHUNK: Chunk = { text: '', bytes: Buffer.alloc(0) };

function chunkOf(text: string): Chunk {
  return { text, bytes: Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`) };
}

/**
 * One open event stream. Everything sent in one turn of the event loop is one chunk in one write, for all streams in one callback: with
 * many viewers of a task, `response.write` of each would cost a third of their CPU (four parts and a callback for each chunk).
 */
export class SseStream {
  readonly #response: ServerResponse;
  readonly #writer: PacedWriter;
  readonly #stallMs: number;
  #written = 0;
  /** Text of this turn of the event loop. */
  #text = '';

  /**
   * `stallMs`: a client that reads nothing for this long after the end is cut; before that, the viewer checks it.
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
    // In one write with the comment, but not as one text: Node keeps the head, and as dozens of pieces unless it was written by itself.
    const { socket } = this.#response;
    socket?.cork();
    this.#response.flushHeaders();
    process.nextTick(() => socket?.uncork());
    const comment = sseComment('ok');
    if (this.#writer.send(comment)) this.#written += comment.length;
  }

  get closed(): boolean {
    return this.#writer.closed;
  }

  get backlog(): number {
    return this.#writer.backlog + this.#text.length;
  }

  /** UTF-16 units sent so far; about the bytes of Latin text. */
  get written(): number {
    return this.#written;
  }

  /** Writes whole frames or a comment. Skipped while a larger text is being written. */
  send(text: string): void {
    if (this.closed || this.#writer.slicing) return;
    this.#written += text.length;
    if (this.#text === '' && waiting.push(this) === 1) process.nextTick(writeWaiting);
    this.#text += text;
  }

  /** Writes what was sent. `shared`: the chunk of another stream, written if it has the same text; returns the one to share next. */
  write(shared = NO_CHUNK): Chunk {
    const text = this.#text;
    this.#text = '';
    if (text === '' || this.closed) return shared;
    const { socket, chunkedEncoding, writableCorked } = this.#response;
    // HTTP/1.0 has no chunks; a pipelined response has no socket before the one ahead of it has ended; a corked one still holds what
    // was written in this turn, such as its head.
    if (socket === null || !chunkedEncoding || writableCorked > 0) {
      this.#writer.send(text);
      return shared;
    }
    const chunk = text === shared.text ? shared : chunkOf(text);
    socket.write(chunk.bytes);
    return chunk;
  }

  /**
   * Writes whole frames at the pace of the client. Resolves with false when the client has disconnected, or read nothing for
   * `stallMs`.
   */
  sendAll(text: string, stallMs: number): Promise<boolean> {
    this.write();
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
    this.write();
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
