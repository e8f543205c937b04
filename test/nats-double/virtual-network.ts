import type { NatsConnection } from '@nats-io/nats-core';
import {
  type ConnectionOptions,
  errors,
  NatsConnectionImpl,
  setTransportFactory,
  type Transport,
} from '@nats-io/nats-core/internal';
import type { ClientConnection, Delivery, ServerSocket, ToLeader } from './client-connection.ts';
import type { Clock } from './clock.ts';
import type { NatsDouble } from './nats-double.ts';

/** Calls `arrive` when bytes that are sent now reach the other end, in the order of the calls; never if they are lost. */
type Transfer = (arrive: () => void) => void;

/** The way between a client and its server, and from there to the leaders of streams, which are other servers. Default: at once. */
export type Path = { toServer: ToServer; toClient: Transfer; toLeader?: ToLeader };
/** Like Transfer, for `bytes` of which only the first `count` may arrive. */
type ToServer = (arrive: (count?: number) => void, bytes?: Uint8Array) => void;

/** One address of a double. Faults at one address do not affect connections through the others. */
export type Port = {
  url: string;
  /** Called for each message to a client; true drops it. */
  lose: ((delivery: Delivery) => boolean) | undefined;
  /** Called with all bytes: when the client sends them, and when they arrive at it. */
  watch: ((direction: 'sent' | 'received', bytes: Uint8Array) => void) | undefined;
  /** Closes all connections and refuses new ones until `mend`. */
  cut(): void;
  mend(): void;
  /** The server ends all connections without the client noticing: what the client sends is lost. New connections can be opened. */
  forget(): void;
  /** The process behind the address is gone: its connections end when the server has everything that they sent. */
  close(): void;
};

type Listener = Port & { accept(client: ClientEnd): ServerEnd };
type ClientEnd = { receive(bytes: Uint8Array): void; closed(): void };
type ServerEnd = { send(bytes: Uint8Array): void; close(): void };

/** nats.js has one factory of transports for the whole process, so the addresses of all doubles are in one table. */
const listeners = new Map<string, Listener>();
let ports = 0;

/** A way on which bytes take a constant time. */
export function pathOf(clock: Clock, latencyMs = 0): Path {
  const transfer: Transfer = arrive => void clock.after(latencyMs, arrive);
  return { toServer: transfer, toClient: transfer };
}

/**
 * Opens an address of a double. `host`: a name that no open address has. A repeated run chooses the names itself, because clients send and
 * report them.
 */
export function listen(server: NatsDouble, path: Path, host = nextHost()): Port {
  const open = new Set<Link>();
  let isBroken = false;
  const listener: Listener = {
    url: `nats://${host}`,
    lose: undefined,
    watch: undefined,
    cut() {
      isBroken = true;
      for (const link of [...open]) link.cut();
    },
    mend() {
      isBroken = false;
    },
    forget() {
      for (const link of [...open]) link.forget();
    },
    close() {
      if (listeners.get(host) === listener) listeners.delete(host);
      for (const link of [...open]) link.close();
    },
    accept(client) {
      if (isBroken) throw new errors.ConnectionError('connection refused');
      const link = new Link(path, client, listener);
      open.add(link);
      link.open(server, () => open.delete(link));
      return link;
    },
  };
  listeners.set(host, listener);
  return listener;
}

function nextHost(): string {
  ports += 1;
  return `double-${ports}:4222`;
}

/** A connection of nats.js to a double. Replaces `connect` of @nats-io/transport-node. */
export function connectVirtually(options: ConnectionOptions): Promise<NatsConnection> {
  setTransportFactory({ factory: () => new VirtualTransport() });
  return NatsConnectionImpl.connect(options);
}

/** One connection. Each end learns that the other one has closed it when it has received everything that was sent before. */
class Link implements ServerEnd {
  readonly #path: Path;
  readonly #client: ClientEnd;
  readonly #port: Port;
  readonly #unread = { unreadBytes: 0, reads: 0 };
  #server: ClientConnection | undefined;
  #isServerOpen = true;
  #isClientOpen = true;
  #isForgotten = false;
  #isReset = false;
  /** Reads all bytes that have arrived together, as from a socket. */
  #arriving: Buffer[] = [];
  /** How many of the arriving bytes the client still gets. */
  #lastBytes = Number.POSITIVE_INFINITY;

  constructor(path: Path, client: ClientEnd, port: Port) {
    this.#path = path;
    this.#client = client;
    this.#port = port;
  }

  open(server: NatsDouble, onClosed: () => void): void {
    const close = (unreadBytesMax = Number.POSITIVE_INFINITY) => {
      if (!this.#isServerOpen) return;
      this.#isServerOpen = false;
      this.#lastBytes = unreadBytesMax;
      onClosed();
      if (!this.#isForgotten) this.#path.toClient(() => this.#client.closed());
    };
    const write: ServerSocket['write'] = (bytes, delivery) => this.#write(bytes, delivery);
    this.#server = server.accept(Object.assign(this.#unread, { write, close }), this.#path.toLeader);
  }

  send(bytes: Uint8Array): void {
    const copy = new Uint8Array(bytes);
    this.#port.watch?.('sent', copy);
    this.#path.toServer(count => this.#isServerOpen && this.#server?.receive(copy.subarray(0, count)), copy);
  }

  /** The client closes it. */
  close(): void {
    if (!this.#isClientOpen) return;
    this.#isClientOpen = false;
    this.#path.toServer(() => this.#server?.close());
  }

  /** Bytes on their way are lost. */
  cut(): void {
    this.#isReset = true;
    this.#server?.close();
  }

  forget(): void {
    this.#isForgotten = true;
    this.#server?.close();
  }

  #write(bytes: Buffer, delivery: Delivery | undefined): void {
    if (!this.#isServerOpen || (delivery !== undefined && this.#port.lose?.(delivery))) return;
    this.#arriving.push(bytes);
    this.#unread.unreadBytes += bytes.length;
    if (this.#arriving.length > 1) return;
    this.#path.toClient(() => {
      const arrived = this.#arriving.length === 1 ? this.#arriving[0]! : Buffer.concat(this.#arriving);
      const chunk = arrived.length > this.#lastBytes ? arrived.subarray(0, this.#lastBytes) : arrived;
      this.#arriving = [];
      this.#unread.unreadBytes = 0;
      this.#unread.reads += 1;
      if (!this.#isClientOpen || this.#isForgotten || this.#isReset) return;
      this.#port.watch?.('received', chunk);
      this.#client.receive(chunk);
    });
  }
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
