import {
  ClientConnection,
  type ConnectionHost,
  type DoubleUser,
  type ServerSocket,
  type SlowConsumers,
  type ToLeader,
} from './client-connection.ts';
import type { Clock } from './clock.ts';
import type { HeaderBlock } from './headers.ts';
import { type ApiOptions, JsonApi, type Views } from './json-api.ts';
import type { MessageStore } from './message-store.ts';
import type { LeaderView, Stream, StreamHost } from './stream.ts';
import { Subscriptions } from './subscriptions.ts';
import { goTime, NANOS_PER_MS } from './times.ts';

export type NatsDoubleOptions = {
  clock: Clock;
  name?: string;
  /**
   * Number of servers in the cluster, each of which can store one replica of a stream. To clients they look like one server. Default 1: no
   * cluster.
   */
  nodes?: number;
  /** The replica that answers a direct get. Default: the leader. */
  replicaOf?: ApiOptions['replicaOf'];
  maxPayload?: number;
  /** A message was stored whose id the duplicate window has forgotten. */
  onStoredAgain?: () => void;
  /** Absent: clients need no credentials and may do everything. */
  users?: readonly DoubleUser[];
  /** Called for each publish and subscription that the permissions of a user refuse. */
  onDenied?: (what: string) => void;
  /** Absent: clients may read as slowly as they like. */
  slowConsumers?: SlowConsumers;
  /** Called for each request that the double cannot answer like nats-server. Default: collects them in `unsupported`. */
  onUnsupported?: (what: string) => void;
};

const MAX_PAYLOAD_BYTES = 8 * 1024 * 1024;
const VERSION = '2.15.2';
const API_LEVEL = 5;
const ACK_PREFIX = '$JS.ACK.';
const CLUSTER = 'doubles';

/** One nats-server with JetStream, in memory, on an injected clock. It handles each frame of a client to its end before the next one. */
export class NatsDouble implements StreamHost {
  readonly clock: Clock;
  readonly onStoredAgain: () => void;
  readonly #name: string;
  /** Requests that the double could not answer as nats-server does. A test fails if it has any. */
  readonly unsupported: string[] = [];
  readonly #streams = new Map<string, Stream>();
  readonly #connections = new Set<ClientConnection>();
  readonly #subscriptions = new Subscriptions();
  readonly #api: JsonApi;
  readonly #nodes: number;
  #starts = 1;
  readonly #host: ConnectionHost;

  constructor(options: NatsDoubleOptions) {
    const { clock, name = 'double', maxPayload = MAX_PAYLOAD_BYTES, users = [], nodes = 1 } = options;
    this.clock = clock;
    this.onStoredAgain = options.onStoredAgain ?? (() => {});
    this.#name = name;
    this.#nodes = nodes;
    const onUnsupported = options.onUnsupported ?? ((what: string) => void this.unsupported.push(what));
    const replicaOf = options.replicaOf ?? (stream => stream.store);
    const clusterOf: ApiOptions['clusterOf'] = (stream, view) => this.#clusterOf(stream, view);
    this.#api = new JsonApi(this, this.#streams, { onUnsupported, clusterOf, nodes, replicaOf });
    const info = {
      server_id: `${name}-1`,
      server_name: name,
      version: VERSION,
      proto: 1,
      headers: true,
      max_payload: maxPayload,
      jetstream: true,
      api_lvl: API_LEVEL,
      ...(users.length > 0 && { auth_required: true }),
      ...(nodes > 1 && { cluster: CLUSTER }),
    };
    this.#host = {
      info,
      users,
      slowConsumers: options.slowConsumers,
      clock,
      onDenied: options.onDenied ?? (() => {}),
      subscriptions: this.#subscriptions,
      publish: (subject, reply, header, payload, from) => {
        const pass = (views?: Views) => {
          if (!this.#route(subject, subject, reply, header, payload, views)) from.noResponders(subject, reply);
        };
        const stream = from.toLeader && this.#concerns(subject);
        if (stream === undefined) pass();
        else from.toLeader!({ stream, subject }, pass);
      },
      interestChanged: subject => this.#interestChanged(subject),
      closed: connection => this.#connections.delete(connection),
    };
  }

  /** Begins a connection. The caller passes on the data that the client sends. */
  accept(socket: ServerSocket, toLeader?: ToLeader): ClientConnection {
    const connection = new ClientConnection(this.#host, socket, toLeader);
    this.#connections.add(connection);
    return connection;
  }

  get streams(): ReadonlyMap<string, Stream> {
    return this.#streams;
  }

  /** Loses a stream with its consumers. */
  loseStream(name: string): void {
    this.#streams.get(name)?.close();
    this.#streams.delete(name);
  }

  /**
   * All connections end, and consumers that are only in memory are gone. `lastSeqs`: streams that lose everything after a sequence. `states`: streams
   * that are again as they were.
   */
  restart(lastSeqs: ReadonlyMap<string, number> = new Map(), states: ReadonlyMap<string, MessageStore> = new Map()): void {
    for (const connection of [...this.#connections]) connection.close();
    this.#starts += 1;
    this.#host.info.server_id = this.#serverId;
    for (const stream of this.#streams.values()) {
      for (const consumer of [...stream.consumers.values()]) if (consumer.config.mem_storage) consumer.vanish();
      const lastSeq = lastSeqs.get(stream.config.name);
      if (lastSeq !== undefined) stream.loseTail(lastSeq);
      const state = states.get(stream.config.name);
      if (state !== undefined) stream.goBack(state);
      stream.changeLeader();
    }
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
  #route(to: string, subject: string, reply: string, header: HeaderBlock, payload: Buffer, views?: Views): boolean {
    const receivers = this.#subscriptions.receivers(to);
    for (const receiver of receivers) receiver.connection.deliver(receiver, subject, reply, header, payload);
    if (to.startsWith(ACK_PREFIX)) return this.#ack(to, reply, payload) || receivers.length > 0;
    if (this.#api.request(to, reply, payload, views)) return true;
    const stream = to === subject ? this.#streamOf(to) : undefined;
    stream?.publish(subject, reply, header, payload);
    return stream !== undefined || receivers.length > 0;
  }

  get #serverId(): string {
    return `${this.#name}-${this.#starts}`;
  }

  #clusterOf(stream: Stream, view: LeaderView): Record<string, unknown> {
    const leader = `${this.#name}-1`;
    if (this.#nodes === 1) return { leader: this.#name };
    const active = view.silentSinceMs === undefined ? 0 : (this.clock.nowMs() - view.silentSinceMs) * NANOS_PER_MS;
    const replicas = stream.followers.map((_, index) => ({ name: `${this.#name}-${index + 2}`, current: true, active }));
    return { name: CLUSTER, leader, leader_since: goTime(view.leaderSinceMs), replicas };
  }

  /** The stream that a message is stored in, or that a request or an acknowledgement concerns. */
  #concerns(subject: string): string | undefined {
    if (subject.startsWith(ACK_PREFIX)) return subject.split('.')[2];
    if (subject.startsWith('$JS.API.')) return subject.split('.').find(token => this.#streams.has(token));
    return this.#streamOf(subject)?.config.name;
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
