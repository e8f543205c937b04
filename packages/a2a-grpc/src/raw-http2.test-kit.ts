import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { SERVICE_1_0 } from './services.ts';

/** RFC 9113 6: types of frames. */
export const FRAME = { data: 0, headers: 1, priority: 2, reset: 3, settings: 4, ping: 6, goAway: 7, window: 8, continuation: 9 };
export const END_STREAM = 1;
const ACK = 1;
export const END_HEADERS = 4;
const FRAME_HEAD_BYTES = 9;

export type RawFrame = { type: number; flags: number; stream: number; payload: Buffer };

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** HPACK without any compression (RFC 7541 6.2.2). */
export function headerBlock(fields: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(Object.entries(fields).flatMap(([name, value]) => [Buffer.of(0), literal(name), literal(value)]));
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  const length: number[] = [];
  if (bytes.length < 127) length.push(bytes.length);
  else {
    length.push(127);
    let rest = bytes.length - 127;
    for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}

export const callFields = (name: string, more: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  ':method': 'POST',
  ':scheme': 'http',
  ':path': `/${SERVICE_1_0}/${name}`,
  ':authority': 'a',
  'content-type': 'application/grpc',
  te: 'trailers',
  'a2a-version': '1.0',
  ...more,
});

/** A GetTask request in wire format. */
export function getTaskBytes(id: string): Buffer {
  const message = Buffer.concat([Buffer.of(0x12, id.length), Buffer.from(id)]);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** An HTTP/2 connection frame by frame, for behavior that client libraries lack. Answers pings and settings unless `silent`. */
export class RawConnection {
  readonly socket: Socket;
  readonly frames: RawFrame[] = [];
  readonly closed: Promise<void>;
  #rest = Buffer.alloc(0);
  readonly #silent: boolean;

  constructor(t: TestContext, port: number, { silent = false, preface = true } = {}) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#silent = silent;
    this.closed = promise;
    this.socket = connect({ port, host: '127.0.0.1' });
    this.socket.on('error', () => {}).once('close', () => resolve());
    this.socket.on('data', bytes => this.#read(bytes as Buffer));
    t.after(() => this.socket.destroy());
    if (preface) this.send(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(FRAME.settings, 0, 0));
  }

  send(...bytes: Uint8Array[]): void {
    if (this.socket.writable) this.socket.write(Buffer.concat(bytes));
  }

  /** Resolves when the kernel has accepted what was sent so far. */
  sendAll(bytes: Uint8Array): Promise<void> {
    return new Promise(resolve => {
      if (!this.socket.writable) resolve();
      else this.socket.write(bytes, () => resolve());
    });
  }

  of(type: number, stream?: number): RawFrame[] {
    return this.frames.filter(one => one.type === type && (stream === undefined || one.stream === stream));
  }

  /** The code of the received GOAWAY. */
  get goAway(): number | undefined {
    return this.of(FRAME.goAway).at(-1)?.payload.readUInt32BE(4);
  }

  #read(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    while (this.#rest.length >= FRAME_HEAD_BYTES) {
      const end = FRAME_HEAD_BYTES + this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < end) return;
      const [type, flags] = [this.#rest.readUInt8(3), this.#rest.readUInt8(4)];
      const payload = this.#rest.subarray(FRAME_HEAD_BYTES, end);
      this.frames.push({ type, flags, stream: this.#rest.readUInt32BE(5), payload });
      this.#rest = this.#rest.subarray(end);
      if (this.#silent || (flags & ACK) !== 0) continue;
      if (type === FRAME.settings) this.send(frame(FRAME.settings, ACK, 0));
      if (type === FRAME.ping) this.send(frame(FRAME.ping, ACK, 0, payload));
    }
  }
}
