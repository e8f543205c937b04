import { connect, createServer, type Socket } from 'node:net';
import { listen } from '../../kit/listen.ts';

/**
 * A TCP proxy before a real nats-server. It parses the server's side of the protocol, so that a test can drop single messages to a
 * client (a live message, the ack of a publish), close the connection, or freeze the path. Other bytes pass unchanged.
 */
export type NatsProxy = {
  url: string;
  /** Called for each message to a client; true drops it. */
  lose: ((frame: Frame) => boolean) | undefined;
  /** Called with the protocol line of each message to a client and of the server's greeting (`INFO`); returns the line to send. */
  rewrite: ((line: string) => string) | undefined;
  /** Closes all connections and refuses new ones until `mend`. */
  cut(): void;
  mend(): void;
  /** Keeps all connections open and lets nothing through in either direction until `thaw`, like a path that loses every packet. */
  freeze(): void;
  /** Freezes the connections that are open now; new ones pass. */
  strand(): void;
  /** From now on delays everything by `ms`, in both directions. */
  delay(ms: number): void;
  /** From now on, lets at most this many bytes a second through to each client. */
  limit(bytesPerSecond: number): void;
  /** Passes what was held back. */
  thaw(): void;
  close(): Promise<void>;
};

type Frame = { subject: string; header: string; payload: Buffer };

export async function startNatsProxy(port: number): Promise<NatsProxy> {
  const sockets = new Set<Socket>();
  let broken = false;
  let frozen = false;
  let delayMs = 0;
  let bytesPerMs = Number.POSITIVE_INFINITY;
  const server = createServer(client => {
    if (broken) return client.destroy();
    const upstream = connect(port, '127.0.0.1');
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    const toServer = new DelayedWriter(upstream, () => delayMs);
    const toClient = new DelayedWriter(client, () => delayMs);
    client.on('data', (chunk: Buffer) => toServer.write(chunk));
    // A connection that begins during this time is accepted but gets no answer.
    if (frozen) for (const socket of [client, upstream]) socket.pause();
    const frames = new FrameReader();
    upstream.on('data', (chunk: Buffer) => {
      const pauseMs = chunk.length / bytesPerMs;
      if (pauseMs > 0) {
        upstream.pause();
        setTimeout(() => frozen || upstream.resume(), pauseMs);
      }
      for (const { bytes, frame } of frames.read(chunk)) {
        const isRewritten = frame !== undefined || bytes.toString('latin1', 0, INFO.length) === INFO;
        if (!frame || !proxy.lose?.(frame))
          toClient.write(isRewritten && proxy.rewrite ? rewritten(bytes, proxy.rewrite) : bytes);
      }
    });
  });
  await listen(server);
  const address = server.address() as { port: number };
  const proxy: NatsProxy = {
    url: `nats://127.0.0.1:${address.port}`,
    lose: undefined,
    rewrite: undefined,
    cut() {
      broken = true;
      for (const socket of sockets) socket.destroy();
    },
    mend() {
      broken = false;
    },
    freeze() {
      frozen = true;
      for (const socket of sockets) socket.pause();
    },
    strand() {
      for (const socket of sockets) socket.pause();
    },
    delay(ms) {
      delayMs = ms;
    },
    limit(bytesPerSecond) {
      bytesPerMs = bytesPerSecond / 1_000;
    },
    thaw() {
      frozen = false;
      for (const socket of sockets) socket.resume();
    },
    async close() {
      proxy.cut();
      await new Promise(resolve => server.close(resolve));
    },
  };
  return proxy;
}

/** Writes in the order of the calls, each after the delay that was set when it was called. */
class DelayedWriter {
  readonly #socket: Socket;
  readonly #delayMs: () => number;
  readonly #queue: { at: number; bytes: Buffer }[] = [];

  constructor(socket: Socket, delayMs: () => number) {
    this.#socket = socket;
    this.#delayMs = delayMs;
  }

  write(bytes: Buffer): void {
    const delayMs = this.#delayMs();
    if (this.#queue.length === 0 && delayMs === 0) return void this.#socket.write(bytes);
    this.#queue.push({ at: performance.now() + delayMs, bytes });
    if (this.#queue.length === 1) this.#later();
  }

  #later(): void {
    setTimeout(
      () => {
        this.#socket.write(this.#queue.shift()!.bytes);
        while ((this.#queue[0]?.at ?? Number.POSITIVE_INFINITY) <= performance.now())
          this.#socket.write(this.#queue.shift()!.bytes);
        if (this.#queue.length > 0) this.#later();
      },
      Math.max(0, this.#queue[0]!.at - performance.now()),
    );
  }
}

const CRLF = Buffer.from('\r\n');
const INFO = 'INFO ';

function rewritten(bytes: Buffer, rewrite: (line: string) => string): Buffer {
  const lineEnd = bytes.indexOf(CRLF);
  return Buffer.concat([Buffer.from(rewrite(bytes.toString('latin1', 0, lineEnd)), 'latin1'), bytes.subarray(lineEnd)]);
}

/** Splits the server's bytes into protocol lines, and messages with their payload (`MSG`, `HMSG`). */
class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  *read(chunk: Buffer): Generator<{ bytes: Buffer; frame?: Frame }> {
    this.#rest = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    for (;;) {
      const lineEnd = this.#rest.indexOf(CRLF);
      if (lineEnd < 0) return;
      const [kind, subject, ...sizes] = this.#rest.toString('latin1', 0, lineEnd).split(' ');
      const isMessage = kind === 'MSG' || kind === 'HMSG';
      const end = lineEnd + CRLF.length + (isMessage ? Number(sizes.at(-1)) + CRLF.length : 0);
      if (this.#rest.length < end) return;
      const bytes = this.#rest.subarray(0, end);
      this.#rest = this.#rest.subarray(end);
      if (!isMessage) yield { bytes };
      else {
        const headerBytes = kind === 'HMSG' ? Number(sizes.at(-2)) : 0;
        const begin = lineEnd + CRLF.length;
        const header = bytes.toString('latin1', begin, begin + headerBytes);
        const payload = bytes.subarray(begin + headerBytes, end - CRLF.length);
        yield { bytes, frame: { subject: subject ?? '', header, payload } };
      }
    }
  }
}

/** The server's answer to a publish that it has stored. */
export function isPublishAnswer({ payload }: { payload: Buffer }): boolean {
  return payload.toString('latin1', 0, 10) === '{"stream":';
}

/** From now on no answer to a publish arrives. Resolves with the first answer that is lost. */
export function loseAnswers(proxy: NatsProxy): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  proxy.lose = frame => {
    const isAnswer = isPublishAnswer(frame);
    if (isAnswer) resolve();
    return isAnswer;
  };
  return promise;
}
