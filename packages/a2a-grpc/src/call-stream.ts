import type { ServerHttp2Stream } from 'node:http2';
import type { Metadata, ServerWritableStream } from '@grpc/grpc-js';
import { ignoreErrors, onResponseClose, writePaced } from '@hopline/a2a-server';
import { cut } from './call-bounds.ts';
import { http2StreamOf } from './http2-stream.ts';
import type { failure } from './metadata.ts';

export type StreamingCall = ServerWritableStream<Buffer, Buffer>;

/**
 * Bytes before each message: a flag and the length (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md,
 * Length-Prefixed-Message).
 */
export const FRAME_PREFIX_BYTES = 5;

/** A message in wire format, encoded once for all its readers. */
export function lengthPrefixed(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(FRAME_PREFIX_BYTES + message.length);
  framed.set(message, FRAME_PREFIX_BYTES);
  writeFramePrefix(framed);
  return framed;
}

/** `framed`: room for the prefix, then the message. */
export function writeFramePrefix(framed: Buffer): void {
  framed[0] = 0;
  framed.writeUInt32BE(framed.length - FRAME_PREFIX_BYTES, 1);
}

/**
 * One open server stream. The library starts and ends it. Messages go directly to the HTTP/2 stream, many in one write, because only that
 * stream shows how many bytes the client has not read.
 */
export class CallStream {
  readonly #call: StreamingCall;
  readonly #http2: ServerHttp2Stream;
  #written = 0;
  /** A large message is being written at the pace of the client, and nothing else may be written in between. */
  #isPacing = false;
  #answered = false;
  #begun = false;

  constructor(call: StreamingCall) {
    this.#call = call;
    this.#http2 = http2StreamOf(call);
    ignoreErrors(this.#http2);
  }

  get closed(): boolean {
    return this.#http2.destroyed || this.#http2.writableEnded || this.#call.writableEnded;
  }

  get backlog(): number {
    return this.#http2.writableLength;
  }

  /** Bytes sent so far. */
  get written(): number {
    return this.#written;
  }

  /** False until the headers are sent. */
  get begun(): boolean {
    return this.#begun;
  }

  /** True once the status has been sent. */
  get answered(): boolean {
    return this.#answered;
  }

  begin(headers: Metadata): void {
    if (this.closed) return;
    this.#begun = true;
    this.#call.sendMetadata(headers);
  }

  /** Writes whole messages. Skipped while a larger one is being written. */
  send(messages: Buffer): void {
    if (this.closed || this.#isPacing) return;
    this.#http2.write(messages);
    this.#written += messages.length;
  }

  /** Writes at the pace of the client. Resolves with false when the client has disconnected, or read nothing for `stallMs`. */
  async sendAll(messages: Buffer, stallMs: number): Promise<boolean> {
    if (this.closed) return false;
    this.#written += messages.length;
    this.#isPacing = true;
    const isWritten = await writePaced(this.#http2, messages, stallMs);
    this.#isPacing = !isWritten;
    return isWritten;
  }

  end(trailers: Metadata): void {
    if (this.#endsUncleanly()) return;
    this.#answered = true;
    this.#call.end(trailers);
  }

  fail(status: ReturnType<typeof failure>): void {
    if (this.#endsUncleanly()) return;
    this.#answered = true;
    this.#call.emit('error', status);
  }

  /** Resets this stream and discards what is buffered for it; the other streams of its connection continue. */
  cut(): void {
    cut(this.#http2);
  }

  onClose(listener: () => void): void {
    onResponseClose(this.#http2, listener);
  }

  /** True while a large message is being written. The stream cannot end cleanly in that time. */
  #endsUncleanly(): boolean {
    if (!this.closed && this.#isPacing) this.cut();
    return this.closed;
  }
}
