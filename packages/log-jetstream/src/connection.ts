import { type Layouts, timeOfTaskId } from '@hopline/events';
import { backoffMs, LogDenied, LogUnavailable } from '@hopline/log';
import { withinMs } from '@hopline/telemetry';
import { type ApiError, JetStreamApiError, type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import {
  AuthorizationError,
  createInbox,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  PermissionViolationError,
  type Status,
  type Subscription,
  UserAuthenticationExpiredError,
} from '@nats-io/nats-core';
import { connect as connectBySocket } from '@nats-io/transport-node';
import { authentication, connectionFault, encryption, isPermanent, knownUser, withoutUser } from './connection-security.ts';
import { Leaders } from './leaders.ts';
import { isStreamNotFound } from './missing-stream.ts';
import type { LogNames } from './names.ts';
import type { Connect, Credentials, LogEvent, NatsTls } from './options.ts';
import { ReadSlots } from './read-slots.ts';
import { ReconnectDelay } from './reconnect-delay.ts';
import { DirectStreams, type StreamRequests } from './stream-requests.ts';
import { inboxOf, type LogUser } from './users.ts';

const PING_INTERVAL_MS = 5_000;
/**
 * A connection that receives nothing (its path is gone, and nothing closes it) is replaced after this many unanswered PINGs. That takes 10
 * to 15 s, less than the time limit of a publish.
 */
const SILENT_PINGS_MAX = 2;
/**
 * A connection that still receives messages is replaced only after a minute without an answer to a PING: the server is slow, and a new
 * connection would give it more work (ADR 216).
 */
const PINGS_OUT_MAX = 12;
const DIAL_TIMEOUT_MS = 5_000;
const DIAL_RETRY_MS_BASE = 100;
const DIAL_RETRY_MS_MAX = 2_000;
/** Time limit of a JetStream request with its retries: longer than an election (4-9 s) and a restart. */
export const REQUEST_TIMEOUT_MS = 20_000;
/** Time for which the answer to a JetStream API request is accepted. An answer takes a millisecond; `retry` repeats the request earlier. */
const API_TIMEOUT_MS = REQUEST_TIMEOUT_MS;
/** Timeout of a request whose answer only explains an error. */
const MISSING_TIMEOUT_MS = 500;
const DRAIN_TIMEOUT_MS = 2_000;

export type ConnectOptions = {
  servers: string;
  name: string;
  credentials?: Credentials | undefined;
  rejectedMsMax?: number | undefined;
  tls?: NatsTls | undefined;
  /** Names of the cluster's streams, subjects and buckets in the account. */
  names: LogNames;
  user?: LogUser | undefined;
  /** Replicas of each stream. Default 1. */
  replicas?: number;
  timeoutMs: number;
  /** Default: by TCP or TLS. */
  connect?: Connect | undefined;
  onEvent: (event: LogEvent) => void;
};

/** A denied operation and its subject. */
export type Denial = Pick<PermissionViolationError, 'operation' | 'subject'>;

/** One connection to NATS, shared by all parts of the log. */
export class Connection {
  readonly nc: NatsConnection;
  readonly jsm: JetStreamManager;
  /** Has one stream group until the number in the log is known. */
  names: LogNames;
  /** Replicas of each stream: with more than one, a direct get may be answered by a replica that lags. */
  readonly replicas: number;
  readonly leaders: Leaders;
  readonly reads = new ReadSlots();
  /** A sub-agent asks relays. */
  streams: StreamRequests = new DirectStreams(this);
  readonly onEvent: (event: LogEvent) => void;
  /** Aborts when the log is closed, which ends every reader. */
  readonly closed: AbortSignal;
  readonly #closing = new AbortController();
  readonly #disconnects = new Set<() => void>();
  readonly #reconnects = new Set<() => void>();
  readonly #departures = new Set<() => void>();
  readonly #denials = new Set<(denial: Denial) => void>();
  readonly #expectedDenials = new Set<string>();
  readonly #missing = new Map<string, Promise<boolean>>();
  readonly #inboxPrefix: string;
  /** The name that the server knows; that of the connection if the login has none. */
  readonly userName: string;
  readonly #rejectedMsMax: number;
  /** Time (performance.now()) of the first rejection of the credentials since the last successful connection. */
  #rejectedSinceMs: number | undefined;
  #connected = true;
  /** Unanswered PINGs since the last message. */
  #silentPings = 0;
  #messagesAtPing = 0;
  #knownUntilMs = Number.POSITIVE_INFINITY;
  #readLayouts = () => {};

  constructor(nc: NatsConnection, jsm: JetStreamManager, options: ConnectOptions) {
    const { names, onEvent, name, servers, credentials, rejectedMsMax = Number.POSITIVE_INFINITY } = options;
    this.nc = nc;
    this.jsm = jsm;
    this.names = names;
    this.replicas = options.replicas ?? 1;
    this.onEvent = onEvent;
    this.#inboxPrefix = inboxPrefixOf(options);
    this.userName = knownUser(servers, credentials) ?? name;
    this.#rejectedMsMax = credentials && 'credsFile' in credentials ? Number.POSITIVE_INFINITY : rejectedMsMax;
    this.closed = this.#closing.signal;
    this.leaders = new Leaders(jsm, this.replicas);
    this.onDisconnect(() => this.leaders.disconnected());
    void this.#watch();
    void nc.closed().then(() => this.#closing.abort());
  }

  get connected(): boolean {
    return this.#connected && !this.nc.isClosed();
  }

  get layouts(): Layouts {
    return this.names.layouts;
  }

  /** `knownUntilMs`: the layouts of tasks that are made before this time, in epoch milliseconds, cannot change. */
  useLayouts(layouts: Layouts, knownUntilMs = Number.POSITIVE_INFINITY): void {
    this.names = this.names.with(layouts);
    this.#knownUntilMs = knownUntilMs;
  }

  /** Sets the function that reads the layouts at once. */
  onUnknownLayout(readLayouts: () => void): void {
    this.#readLayouts = readLayouts;
  }

  /**
   * Throws LogUnavailable if a task may be in a layout that this process has not seen: it has not read the layouts for minutes, or the
   * clock was set forward. It starts a read, so that a later try succeeds if NATS answers.
   */
  requireKnownLayout(taskId: string): void {
    if (Date.now() <= this.#knownUntilMs || (timeOfTaskId(taskId) ?? 0) <= this.#knownUntilMs) return;
    this.#readLayouts();
    throw new LogUnavailable('the layouts of the log were not read for minutes, so the streams of new tasks are not known');
  }

  requireOpen(): void {
    if (this.closed.aborted) throw new LogUnavailable('the log is closed');
  }

  /** Publishes without an acknowledgement. Returns false without a connection, because nats.js would drop the message silently or throw. */
  send(subject: string, payload: string, reply?: string): boolean {
    if (!this.connected) return false;
    try {
      this.nc.publish(subject, payload, { ...(reply && { reply }) });
      return true;
    } catch {
      // Draining: the log is being closed.
      return false;
    }
  }

  /** Like `send`, for a message with headers. nats.js modifies `headers`. */
  sendBytes(subject: string, payload: Uint8Array, headers: MsgHdrs): void {
    if (!this.connected) return;
    try {
      this.nc.publish(subject, payload, { headers });
    } catch {
      // Draining: the log is being closed.
    }
  }

  /**
   * Throws LogUnavailable when the log is closed. `onRejected` is called when the server does not permit the subscription. `queue`: subscribers that
   * share the messages.
   */
  subscribe(subject: string, onMsg: (msg: Msg) => void, onRejected: () => void, queue?: string): Subscription {
    try {
      const callback = (error: Error | null, msg: Msg) => (error ? onRejected() : onMsg(msg));
      return this.nc.subscribe(subject, { callback, ...(queue && { queue }) });
    } catch (error) {
      throw new LogUnavailable('the log is closed', { cause: error });
    }
  }

  /** A JetStream API request for which nats.js has no method. Rejects with JetStreamApiError. */
  async api<T>(call: string, request: object, timeout = API_TIMEOUT_MS): Promise<T> {
    const answer = await this.nc.request(`$JS.API.${call}`, JSON.stringify(request), { timeout });
    const { error, ...result } = answer.json<{ error?: ApiError } & T>();
    if (error !== undefined) throw new JetStreamApiError(error);
    return result as T;
  }

  /**
   * Whether the stream of an unanswered request does not exist. Resolves with false if JetStream does not answer in time, because the stream then lacks
   * a leader. Concurrent calls share one request.
   */
  isMissing(stream: string): Promise<boolean> {
    let asked = this.#missing.get(stream);
    if (asked === undefined) {
      asked = this.#isMissing(stream).finally(() => this.#missing.delete(stream));
      this.#missing.set(stream, asked);
    }
    return asked;
  }

  async #isMissing(stream: string): Promise<boolean> {
    try {
      await withinMs(this.streams.info(stream), MISSING_TIMEOUT_MS);
      return false;
    } catch (error) {
      return isStreamNotFound(error);
    }
  }

  /** A new subject for answers. Only the user of this connection may subscribe to it. */
  createInbox(): string {
    return createInbox(this.#inboxPrefix);
  }

  /** The error of a request that the server did not permit; undefined for any other error. */
  toDenied(error: unknown): LogDenied | undefined {
    const violation = error instanceof Error && error.cause !== undefined ? error.cause : error;
    return violation instanceof PermissionViolationError ? this.denied(violation, error) : undefined;
  }

  denied({ operation, subject }: Denial, cause?: unknown): LogDenied {
    const action = operation === 'publish' ? 'publish to' : 'subscribe to';
    const sentence = `NATS does not permit user ${this.userName} to ${action} ${subject}`;
    return new LogDenied(`${sentence}: give it the permissions of its service (infra/nats)`, { cause });
  }

  /** `listener` is called for each publish and subscription that the server does not permit. */
  onDenied(listener: (denial: Denial) => void): void {
    this.#denials.add(listener);
  }

  /** The subjects for which the server denies `act`. The denials are expected, so they are not reported. */
  async deniedOf(subjects: readonly string[], act: () => void): Promise<Set<string>> {
    const denied = new Set<string>();
    const listener = ({ subject }: Denial) => denied.add(subject);
    for (const subject of subjects) this.#expectedDenials.add(subject);
    this.#denials.add(listener);
    try {
      act();
      await this.nc.flush();
      // A denial arrives before the answer to the flush, and reaches its listeners in the same turn of the event loop.
      await new Promise(setImmediate);
    } finally {
      this.#denials.delete(listener);
    }
    return denied;
  }

  onDisconnect(listener: () => void): () => void {
    this.#disconnects.add(listener);
    return () => this.#disconnects.delete(listener);
  }

  onReconnect(listener: () => void): () => void {
    this.#reconnects.add(listener);
    return () => this.#reconnects.delete(listener);
  }

  /** `listener` is called when a server leaves the cluster: the connected one, or one that it advertised. */
  onServerLeft(listener: () => void): () => void {
    this.#departures.add(listener);
    return () => this.#departures.delete(listener);
  }

  async close(): Promise<void> {
    if (this.closed.aborted) return;
    this.#closing.abort();
    // Drain flushes buffered acks and unsubscribes; without a server it would wait forever.
    if (this.connected) {
      let timer: NodeJS.Timeout | undefined;
      const timeout = new Promise<void>(resolve => {
        timer = setTimeout(resolve, DRAIN_TIMEOUT_MS);
      });
      await Promise.race([this.nc.drain().catch(() => {}), timeout]);
      clearTimeout(timer);
    }
    await this.nc.close();
  }

  async #watch(): Promise<void> {
    for await (const status of this.nc.status()) this.#onStatus(status);
  }

  #onStatus(status: Status): void {
    switch (status.type) {
      case 'disconnect':
        this.#connected = false;
        for (const listener of [...this.#disconnects]) listener();
        if (!this.closed.aborted) this.onEvent({ type: 'disconnected', server: status.server });
        break;
      case 'reconnect':
        this.#connected = true;
        this.#rejectedSinceMs = undefined;
        this.onEvent({ type: 'reconnected', server: status.server });
        for (const listener of [...this.#reconnects]) listener();
        break;
      case 'ping':
        this.#onPing(status.pendingPings);
        break;
      case 'ldm':
        this.onEvent({ type: 'lame-duck', server: status.server });
        for (const listener of [...this.#departures]) listener();
        break;
      case 'update':
        if (status.deleted !== undefined && status.deleted.length > 0) for (const listener of [...this.#departures]) listener();
        break;
      case 'error':
        if (status.error instanceof PermissionViolationError) {
          for (const listener of [...this.#denials]) listener(status.error);
          if (this.#expectedDenials.has(status.error.subject)) break;
          this.onEvent({ type: 'denied', message: this.denied(status.error).message });
          break;
        }
        this.onEvent({ type: 'server-error', message: status.error.message });
        if (isRejection(status.error)) this.#onRejected(performance.now());
        break;
      default:
    }
  }

  /** `pending` is the number of PINGs without an answer, including the one that is about to be sent. */
  #onPing(pending: number): void {
    const { inMsgs } = this.nc.stats();
    if (pending === 1 || inMsgs !== this.#messagesAtPing) this.#silentPings = 0;
    else this.#silentPings += 1;
    this.#messagesAtPing = inMsgs;
    if (this.#silentPings >= SILENT_PINGS_MAX) void this.nc.reconnect().catch(() => {});
  }

  #onRejected(nowMs: number): void {
    this.#rejectedSinceMs ??= nowMs;
    if (this.closed.aborted || nowMs - this.#rejectedSinceMs < this.#rejectedMsMax) return;
    this.onEvent({
      type: 'rejected',
      message: `NATS has rejected the credentials of user ${this.userName} for ${this.#rejectedMsMax / 1_000} s`,
    });
  }
}

function isRejection(error: Error): boolean {
  return error instanceof AuthorizationError || error instanceof UserAuthenticationExpiredError;
}

function inboxPrefixOf({ user, names }: ConnectOptions): string {
  return user === undefined ? '_INBOX' : inboxOf(user, names);
}

/** Rejects with LogUnavailable when no server answers in time, or when JetStream is off. */
export async function openConnection(options: ConnectOptions): Promise<Connection> {
  const nc = await dial(options);
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: API_TIMEOUT_MS });
  try {
    await requireJetStream(nc, jsm, options);
  } catch (error) {
    await nc.close();
    throw error;
  }
  return new Connection(nc, jsm, options);
}

/**
 * A server without JetStream may have peers with it, so only the API's own answer counts. A cluster also answers "not enabled"
 * before it has a leader, so the request is repeated until `timeoutMs` is over.
 */
async function requireJetStream(
  nc: NatsConnection,
  jsm: JetStreamManager,
  { servers, timeoutMs }: ConnectOptions,
): Promise<void> {
  if (nc.info?.jetstream === true) return;
  const deadline = performance.now() + timeoutMs;
  for (let failures = 1; ; failures += 1) {
    try {
      await jsm.getAccountInfo();
      return;
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'JetStreamNotEnabled') return;
      if (performance.now() >= deadline) {
        const address = servers.split(',').map(url => withoutUser(url.trim()));
        throw new LogUnavailable(`JetStream is off at ${address.join(', ')}: start nats-server with -js`, { cause: error });
      }
    }
    await new Promise(resolve => setTimeout(resolve, backoffMs(failures, DIAL_RETRY_MS_BASE, DIAL_RETRY_MS_MAX)));
  }
}

/** A retry loop instead of nats.js's `waitOnFirstConnect`, which never ends, not even for a wrong password. */
async function dial(options: ConnectOptions): Promise<NatsConnection> {
  const { servers, name, credentials, tls, timeoutMs, connect = connectBySocket, onEvent } = options;
  const deadline = performance.now() + timeoutMs;
  const delay = new ReconnectDelay();
  const urls = servers.split(',').map(url => url.trim());
  for (let failures = 1; ; failures += 1) {
    try {
      return await connect({
        servers: urls.map(withoutUser),
        name,
        inboxPrefix: inboxPrefixOf(options),
        ...authentication(urls[0] ?? '', credentials, error => onEvent({ type: 'check-failed', what: 'NATS_CREDS_FILE', error })),
        ...encryption(urls, tls),
        // With the default of 10 attempts, the connection would then be closed for good.
        maxReconnectAttempts: -1,
        reconnectDelayHandler: () => delay.next(),
        pingInterval: PING_INTERVAL_MS,
        maxPingOut: PINGS_OUT_MAX,
        timeout: DIAL_TIMEOUT_MS,
        // A stack trace per request halves the publish rate (40 k/s against 65-76 k/s, measured).
        noAsyncTraces: true,
        // nats.js would close the connection at the second rejection. A server with other credentials may have been started by mistake, and a
        // file of credentials is read at each connection. `rejectedMsMax` limits the others.
        ignoreAuthErrorAbort: true,
      });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (isPermanent(reason)) throw unreachable(urls, reason, error);
      if (performance.now() >= deadline) throw unreachable(urls, reason, error);
      await new Promise(resolve => setTimeout(resolve, backoffMs(failures, DIAL_RETRY_MS_BASE, DIAL_RETRY_MS_MAX)));
    }
  }
}

function unreachable(urls: string[], reason: string, cause: unknown): LogUnavailable {
  return new LogUnavailable(connectionFault(urls.map(withoutUser).join(', '), reason, DIAL_TIMEOUT_MS), { cause });
}
