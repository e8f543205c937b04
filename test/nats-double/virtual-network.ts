import type { NatsConnection } from '@nats-io/nats-core';
import {
  type ConnectionOptions,
  errors,
  NatsConnectionImpl,
  setTransportFactory,
  type Transport,
} from '@nats-io/nats-core/internal';
import type { ClientConnection } from './client-connection.ts';
import type { Clock } from './clock.ts';
import type { NatsDouble } from './nats-double.ts';

/** A message on its way to a client. */
type Delivery = { subject: string; header: string; payload: Buffer };

/** One address of a double. Faults at one address do not affect connections through the others. */
export type Port = {
  url: string;
  /** Called for each message to a client; true drops it. */
  lose: ((delivery: Delivery) => boolean) | undefined;
  /** Closes all connections and refuses new ones until `mend`. */
  cut(): void;
  mend(): void;
};

type Listener = Port & { accept(client: ClientEnd): ServerEnd };
type ClientEnd = { receive(bytes: Uint8Array): void; closed(): void };
type ServerEnd = { send(bytes: Uint8Array): void; close(): void };

/** nats.js has one factory of transports for the whole process, so the addresses of all doubles are in one table. */
const listeners = new Map<string, Listener>();
let ports = 0;

/** Opens an address of a double. Bytes take `latencyMs` of the clock in each direction and arrive in order. */
export function listen(server: NatsDouble, clock: Clock, latencyMs = 0): Port {
  ports += 1;
  const host = `double-${ports}:4222`;
  const open = new Set<() => void>();
  let isBroken = false;
  const listener: Listener = {
    url: `nats://${host}`,
    lose: undefined,
    cut() {
      isBroken = true;
      for (const close of [...open]) close();
    },
    mend() {
      isBroken = false;
    },
    accept(client) {
      if (isBroken) throw new errors.ConnectionError('connection refused');
      const end = link(
        server,
        clock,
        latencyMs,
        client,
        bytes => listener.lose?.(deliveryOf(bytes)) ?? false,
        () => open.delete(end.close),
      );
      open.add(end.close);
      return end;
    },
  };
  listeners.set(host, listener);
  return listener;
}

/** A connection of nats.js to a double. Replaces `connect` of @nats-io/transport-node. */
export function connectVirtually(options: ConnectionOptions): Promise<NatsConnection> {
  setTransportFactory({ factory: () => new VirtualTransport() });
  return NatsConnectionImpl.connect(options);
}

function link(
  server: NatsDouble,
  clock: Clock,
  latencyMs: number,
  client: ClientEnd,
  isLost: (bytes: Buffer) => boolean,
  onClose: () => void,
): ServerEnd {
  let isOpen = true;
  let connection: ClientConnection | undefined;
  /** Reads all bytes that have arrived together, as from a socket. */
  let arriving: Buffer[] = [];
  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    onClose();
    connection?.close();
    client.closed();
  };
  const write = (bytes: Buffer) => {
    if (!isOpen || isLost(bytes)) return;
    arriving.push(bytes);
    if (arriving.length > 1) return;
    clock.after(latencyMs, () => {
      const chunk = Buffer.concat(arriving);
      arriving = [];
      if (isOpen) client.receive(chunk);
    });
  };
  // A server that closes a connection has its last words read first.
  connection = server.accept({ write, close: () => void clock.after(latencyMs, close) });
  const send = (bytes: Uint8Array) => {
    const copy = Uint8Array.from(bytes);
    clock.after(latencyMs, () => isOpen && connection?.receive(copy));
  };
  return { send, close };
}

/** The socket of nats.js: bytes through the virtual network. */
class VirtualTransport implements Transport {
  readonly lang = 'nats.js';
  readonly version = '3.4.0';
  readonly #closed = Promise.withResolvers<undefined | Error>();
  #server: ServerEnd | undefined;
  #received: Uint8Array[] = [];
  #arrival = Promise.withResolvers<void>();
  #isDone = false;

  get isClosed(): boolean {
    return this.#isDone;
  }

  async connect({ listen }: { listen: string }): Promise<void> {
    const listener = listeners.get(listen);
    if (listener === undefined) throw new errors.ConnectionError('connection refused');
    this.#server = listener.accept({
      receive: bytes => {
        this.#received.push(bytes);
        this.#arrival.resolve();
      },
      closed: () => this.#end(),
    });
  }

  async *[Symbol.asyncIterator](): AsyncIterableIterator<Uint8Array> {
    while (!this.#isDone) {
      await this.#arrival.promise;
      this.#arrival = Promise.withResolvers();
      const received = this.#received;
      this.#received = [];
      yield* received;
    }
  }

  isEncrypted(): boolean {
    return false;
  }

  send(frame: Uint8Array): void {
    if (!this.#isDone) this.#server?.send(frame);
  }

  async close(): Promise<void> {
    this.#end();
  }

  disconnect(): void {
    this.#end();
  }

  closed(): Promise<undefined | Error> {
    return this.#closed.promise;
  }

  discard(): void {
    this.#isDone = true;
    this.#server?.close();
  }

  #end(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#server?.close();
    this.#arrival.resolve();
    this.#closed.resolve(undefined);
  }
}

/** The double writes each message by itself. */
function deliveryOf(bytes: Buffer): Delivery {
  const lineEnd = bytes.indexOf('\r\n');
  const [kind, subject = '', ...sizes] = bytes.toString('latin1', 0, lineEnd).split(' ');
  if (kind !== 'MSG' && kind !== 'HMSG') return { subject: '', header: '', payload: Buffer.alloc(0) };
  const begin = lineEnd + 2;
  const headerBytes = kind === 'HMSG' ? Number(sizes.at(-2)) : 0;
  const header = bytes.toString('latin1', begin, begin + headerBytes);
  return { subject, header, payload: bytes.subarray(begin + headerBytes, begin + Number(sizes.at(-1))) };
}
