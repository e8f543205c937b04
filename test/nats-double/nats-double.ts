import { ClientConnection, type ConnectionHost, type DoubleUser, type ServerSocket } from './client-connection.ts';
import type { Clock } from './clock.ts';
import type { HeaderBlock } from './headers.ts';
import { JsonApi } from './json-api.ts';
import type { Stream, StreamHost } from './stream.ts';
import { Subscriptions } from './subscriptions.ts';

export type NatsDoubleOptions = {
  clock: Clock;
  name?: string;
  maxPayload?: number;
  /** Absent: clients need no credentials and may do everything. */
  users?: readonly DoubleUser[];
  /** Called for each request that the double cannot answer as nats-server does. Default: they are in `unsupported`. */
  onUnsupported?: (what: string) => void;
};

const MAX_PAYLOAD_BYTES = 8 * 1024 * 1024;
const VERSION = '2.15.2';
const API_LEVEL = 5;
const ACK_PREFIX = '$JS.ACK.';

/** One nats-server with JetStream, in memory, on an injected clock. It handles each frame of a client to its end before the next one. */
export class NatsDouble implements StreamHost {
  readonly clock: Clock;
  readonly serverName: string;
  /** Requests that the double could not answer as nats-server does. A test fails if it has any. */
  readonly unsupported: string[] = [];
  readonly #streams = new Map<string, Stream>();
  readonly #connections = new Set<ClientConnection>();
  readonly #subscriptions = new Subscriptions();
  readonly #api: JsonApi;
  readonly #host: ConnectionHost;

  constructor(options: NatsDoubleOptions) {
    const { clock, name = 'double', maxPayload = MAX_PAYLOAD_BYTES, users = [] } = options;
    this.clock = clock;
    this.serverName = name;
    const onUnsupported = options.onUnsupported ?? ((what: string) => void this.unsupported.push(what));
    this.#api = new JsonApi(this, this.#streams, onUnsupported);
    const info = {
      ...{ server_id: name, server_name: name, version: VERSION, proto: 1, headers: true, max_payload: maxPayload },
      ...{ jetstream: true, api_lvl: API_LEVEL, ...(users.length > 0 && { auth_required: true }) },
    };
    this.#host = {
      info,
      users,
      subscriptions: this.#subscriptions,
      publish: (subject, reply, header, payload, from) => {
        if (!this.#route(subject, subject, reply, header, payload)) from.noResponders(subject, reply);
      },
      interestChanged: subject => this.#interestChanged(subject),
      closed: connection => this.#connections.delete(connection),
    };
  }

  /** Begins a connection; the caller passes on what the client sends. */
  accept(socket: ServerSocket): ClientConnection {
    const connection = new ClientConnection(this.#host, socket);
    this.#connections.add(connection);
    return connection;
  }

  /** Ends all connections and timers. */
  close(): void {
    for (const connection of [...this.#connections]) connection.close();
    for (const stream of this.#streams.values()) stream.close();
    this.#streams.clear();
  }

  send(subject: string, reply: string, header: HeaderBlock, payload: Buffer): void {
    this.#route(subject, subject, reply, header, payload);
  }

  deliver(to: string, subject: string, reply: string, header: HeaderBlock, payload: Buffer): void {
    this.#route(to, subject, reply, header, payload);
  }

  hasInterest(subject: string): boolean {
    return this.#subscriptions.hasInterest(subject);
  }

  /** Passes a message to clients, streams, consumers and the API. Returns whether anything takes it. */
  #route(to: string, subject: string, reply: string, header: HeaderBlock, payload: Buffer): boolean {
    const receivers = this.#subscriptions.receivers(to);
    for (const receiver of receivers) receiver.connection.deliver(receiver, subject, reply, header, payload);
    if (to.startsWith(ACK_PREFIX)) return this.#ack(to, reply, payload) || receivers.length > 0;
    if (this.#api.request(to, reply, payload)) return true;
    const stream = to === subject ? this.#streamOf(to) : undefined;
    stream?.publish(subject, reply, header, payload);
    return stream !== undefined || receivers.length > 0;
  }

  #streamOf(subject: string): Stream | undefined {
    for (const stream of this.#streams.values()) if (stream.takes(subject)) return stream;
    return undefined;
  }

  #ack(subject: string, reply: string, payload: Buffer): boolean {
    const [stream = '', consumer = ''] = subject.slice(ACK_PREFIX.length).split('.');
    const found = this.#streams.get(stream)?.consumers.get(consumer);
    if (found?.takesAcks !== true) return false;
    found.onAck(subject, reply, payload);
    return true;
  }

  #interestChanged(subject: string): void {
    for (const stream of this.#streams.values())
      for (const consumer of [...stream.consumers.values()]) consumer.interestChanged(subject);
  }
}
