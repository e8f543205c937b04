import { backoffMs, LogConflict, LogFull, LogUnavailable, RecordTooLarge } from '@hopline/log';
import { type Msg, type MsgHdrs, nuid } from '@nats-io/nats-core';
import { type Ack, NO_LEADER, parseAck } from './ack.ts';
import { AppendHealth } from './append-health.ts';
import { encodeHeaders, type RecordHeaders } from './codec.ts';
import type { Connection, Denial } from './connection.ts';
import { LastingSubscription } from './lasting-subscription.ts';
import { STREAM_MISSING } from './missing-stream.ts';

const ACK_TIMEOUT_MS = 2_000;
/** Default time limit of a publish: longer than an election (4-9 s). */
const PUBLISH_TIMEOUT_MS = 20_000;
const IN_FLIGHT_MAX = 512;
const IN_FLIGHT_BYTES_MAX = 16 * 1024 * 1024;
/**
 * Bytes that may wait to be sent. A publish beyond that fails at once, or waits without an encoded payload, so that memory stays bounded
 * while the log is unavailable.
 */
const WAITING_BYTES_MAX = 64 * 1024 * 1024;
/** Publishes that may wait for room. Further ones fail at once. */
const ROOM_WAITERS_MAX = 8_192;
const BUFFER_FULL = 'the publish buffer is full';
/** Above this many bytes, publishes are sent without waiting for the end of the turn of the event loop. */
const SEND_AT_ONCE_BYTES = 64 * 1024;
const RETRY_MS_BASE = 50;
const RETRY_MS_MAX = 1_000;
/** One timer for all open publishes. */
const SWEEP_MS = 25;
const NO_ANSWER = 'no answer';

/** `hasRoom`: the buffer accepts the publish, whatever its size. */
type PublishOptions = RecordHeaders & { timeoutMs?: number | undefined; more?: Record<string, string>; hasRoom?: boolean };

/** A publish that has no payload yet. `deadline`: monotonic milliseconds. */
type RoomWaiter = { deadline: number; resolve: () => void; reject: (error: Error) => void };

type OpenPublish = {
  token: string;
  subject: string;
  payload: Uint8Array;
  headers: MsgHdrs;
  /** Monotonic milliseconds, like `retryAt`, because a change of the system clock must neither fail publishes in flight nor delay them. */
  deadline: number;
  failures: number;
  /** Time of the next try if no answer arrives. */
  retryAt: number;
  /** True while an answer is awaited, false while the publish waits to be sent again. */
  sent: boolean;
  why: string;
  resolve: (ack: { seq: number; duplicate: boolean }) => void;
  reject: (error: Error) => void;
};

/**
 * Publishes to streams and waits for acks, with one subscription for all answers and a map of open publishes: up to 3 times the rate of
 * `js.publish` (measured 111 k/s against 80 k/s at 64 in flight, 191 k/s against 65 k/s at 1024). Bounded in count and bytes. A publish
 * without an answer is sent again, but not before the server has read the first one; its message id is the same, so it is stored once.
 * Nothing is sent while disconnected, because nats.js would drop it silently.
 */
export class Publisher {
  /** Whether the streams store what was published. */
  readonly health: AppendHealth;
  readonly #connection: Connection;
  readonly #bytesMax: number;
  readonly #ackTimeoutMs: number;
  readonly #inbox: string;
  readonly #open = new Map<string, OpenPublish>();
  #waiting: OpenPublish[] = [];
  #roomWaiters: RoomWaiter[] = [];
  #isLettingIn = false;
  #openBytes = 0;
  #waitingBytes = 0;
  #sweeping = false;
  #fillQueued = false;
  /** A PING is in flight. Its answer will show that the server has read the publishes before it. */
  #isPinging = false;
  /** Set while the server rejects the subscription to acknowledgements. */
  #denied: Denial | undefined;

  constructor(connection: Connection, options: { recordBytesMax: number; ackTimeoutMs?: number | undefined }) {
    this.#connection = connection;
    this.health = new AppendHealth(() => connection.names);
    this.#inbox = `${connection.createInbox()}.`;
    this.#bytesMax = options.recordBytesMax;
    this.#ackTimeoutMs = options.ackTimeoutMs ?? ACK_TIMEOUT_MS;
    const acks = `${this.#inbox}*`;
    new LastingSubscription(connection, acks, {
      onMsg: msg => this.#onAnswer(msg),
      onDenied: () => this.#onAcksDenied({ operation: 'subscription', subject: acks }),
      onPermitted: () => {
        this.#denied = undefined;
      },
    });
    connection.onDenied(denial => this.#onDenied(denial));
    connection.onReconnect(() => this.#resend());
    connection.closed.addEventListener('abort', () => this.#rejectAll(new LogUnavailable('the log is closed')), { once: true });
  }

  /**
   * Resolves when stored. Rejects with LogConflict (the expected sequence is not the newest), LogUnavailable (timeout; it may or may not be
   * stored), LogFull (at once, because a publish that waits here would delay others) or RecordTooLarge.
   */
  async publish(subject: string, payload: Uint8Array, options: PublishOptions): Promise<{ seq: number; duplicate: boolean }> {
    this.#connection.requireOpen();
    if (this.#denied !== undefined) throw this.#connection.denied(this.#denied);
    if (payload.length > this.#bytesMax) {
      throw new RecordTooLarge(`the record has ${payload.length} bytes, the log accepts ${this.#bytesMax}`);
    }
    if (options.hasRoom !== true && this.#waitingBytes + payload.length > WAITING_BYTES_MAX)
      throw new LogUnavailable(BUFFER_FULL);
    const headers = encodeHeaders(options);
    for (const [name, value] of Object.entries(options.more ?? {})) headers.append(name, value);
    const { promise, resolve, reject } = Promise.withResolvers<{ seq: number; duplicate: boolean }>();
    const deadline = performance.now() + (options.timeoutMs ?? PUBLISH_TIMEOUT_MS);
    const state = { failures: 0, retryAt: 0, sent: false, why: NO_ANSWER };
    this.#waiting.push({ token: nuid.next(), subject, payload, headers, deadline, ...state, resolve, reject });
    this.#waitingBytes += payload.length;
    if (this.#waitingBytes < SEND_AT_ONCE_BYTES) this.#queueFill();
    else this.#fill();
    this.#sweep();
    return promise;
  }

  /**
   * Like `publish`, but waits for room in the buffer within the same time limit, in the order of the calls. `encode` is called only when
   * there is room, so that waiting publishes have no payload. The buffer may exceed its bound by one payload.
   */
  async publishInTurn(
    subject: string,
    encode: () => Uint8Array,
    options: PublishOptions,
  ): Promise<{ seq: number; duplicate: boolean }> {
    const deadline = performance.now() + (options.timeoutMs ?? PUBLISH_TIMEOUT_MS);
    const mustWait = this.#roomWaiters.length > 0 || this.#waitingBytes >= WAITING_BYTES_MAX;
    if (mustWait) await this.#room(deadline);
    try {
      const timeoutMs = Math.max(0, deadline - performance.now());
      return this.publish(subject, encode(), { ...options, timeoutMs, hasRoom: true });
    } finally {
      if (mustWait) this.#isLettingIn = false;
      this.#letIn();
    }
  }

  #room(deadline: number): Promise<void> {
    this.#connection.requireOpen();
    if (this.#roomWaiters.length >= ROOM_WAITERS_MAX) throw new LogUnavailable(BUFFER_FULL);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#roomWaiters.push({ deadline, resolve, reject });
    this.#sweep();
    return promise;
  }

  /** Admits the next publish, which calls this again after its bytes are counted. */
  #letIn(): void {
    if (this.#isLettingIn || this.#waitingBytes >= WAITING_BYTES_MAX) return;
    const next = this.#roomWaiters.shift();
    this.#isLettingIn = next !== undefined;
    next?.resolve();
  }

  /** Sends the publishes of one turn of the event loop, of all tasks, in one write, because a write costs more than a publish. */
  #queueFill(): void {
    if (this.#fillQueued) return;
    this.#fillQueued = true;
    setImmediate(() => {
      this.#fillQueued = false;
      this.#fill();
    });
  }

  /** Sends waiting publishes while the window has room. A payload larger than the window is sent by itself. */
  #fill(): void {
    while (this.#waiting.length > 0 && this.#open.size < IN_FLIGHT_MAX) {
      const next = this.#waiting[0]!;
      if (this.#open.size > 0 && this.#openBytes + next.payload.length > IN_FLIGHT_BYTES_MAX) return;
      this.#waiting.shift();
      this.#waitingBytes -= next.payload.length;
      this.#open.set(next.token, next);
      this.#openBytes += next.payload.length;
      this.#send(next);
      this.#letIn();
    }
  }

  #send(open: OpenPublish): void {
    open.retryAt = performance.now() + this.#ackTimeoutMs;
    open.sent = true;
    if (!this.#connection.connected) return;
    try {
      this.#connection.nc.publish(open.subject, open.payload, { reply: this.#inbox + open.token, headers: open.headers });
    } catch (error) {
      this.#settle(open, new LogUnavailable((error as Error).message, { cause: error }));
    }
  }

  #onAnswer(msg: Msg): void {
    const open = this.#open.get(msg.subject.slice(this.#inbox.length));
    if (!open) return;
    const ack = parseAck(msg);
    if (ack.verdict === 'full') this.#connection.onEvent({ type: 'full', stream: ack.stream });
    if (ack.verdict === 'retry') {
      this.#retryLater(open, ack.reason);
    } else {
      this.#settle(open, ack.verdict === 'stored' ? ack : toError(ack));
    }
  }

  #onAcksDenied(denial: Denial): void {
    this.#denied = denial;
    this.#rejectAll(this.#connection.denied(denial));
  }

  #onDenied({ operation, subject }: Denial): void {
    if (operation !== 'publish') return;
    const concerned = [...this.#open.values()].filter(open => open.subject === subject);
    for (const open of concerned) this.#settle(open, this.#connection.denied({ operation, subject }));
  }

  #settle(open: OpenPublish, result: { seq: number; duplicate: boolean } | Error): void {
    if (this.#open.delete(open.token)) this.#openBytes -= open.payload.length;
    if (result instanceof Error) {
      if (result instanceof LogUnavailable) this.health.failed(open.subject);
      open.reject(result);
    } else {
      this.health.stored(open.subject);
      open.resolve({ seq: result.seq, duplicate: result.duplicate });
    }
    if (this.#waiting.length > 0) this.#queueFill();
  }

  #retryLater(open: OpenPublish, why: string): void {
    open.failures += 1;
    open.sent = false;
    open.why = why;
    open.retryAt = performance.now() + backoffMs(open.failures, RETRY_MS_BASE, RETRY_MS_MAX);
    this.#connection.onEvent({ type: 'republished', why });
  }

  #sweep(): void {
    if (this.#sweeping) return;
    this.#sweeping = true;
    setTimeout(() => {
      this.#sweeping = false;
      this.#expire(performance.now());
      if (this.#open.size + this.#waiting.length + this.#roomWaiters.length > 0) this.#sweep();
    }, SWEEP_MS);
  }

  #expire(now: number): void {
    const isLate = ({ deadline }: { deadline: number }) => deadline <= now;
    for (const waiter of this.#roomWaiters.filter(isLate)) waiter.reject(new LogUnavailable(`not sent in time: ${BUFFER_FULL}`));
    this.#roomWaiters = this.#roomWaiters.filter(waiter => !isLate(waiter));
    for (const open of this.#waiting.filter(isLate)) {
      this.#waitingBytes -= open.payload.length;
      this.#letIn();
      open.reject(new LogUnavailable(`not sent in time: ${BUFFER_FULL}`));
    }
    this.#waiting = this.#waiting.filter(open => !isLate(open));
    for (const open of [...this.#open.values()]) {
      if (isLate(open)) {
        void this.#expired(open);
      } else if (open.retryAt <= now && this.#connection.connected) {
        if (open.sent) this.#repeatWhenRead();
        else this.#send(open);
      }
    }
  }

  /**
   * Waits for the answer to a PING, then sends the publishes again that have no answer yet. Without that answer the server may not have
   * read the first copies, and the repetitions would only queue behind them: a server or a path that needs seconds for the window would get
   * ever more to read (ADR 216).
   */
  #repeatWhenRead(): void {
    if (this.#isPinging) return;
    this.#isPinging = true;
    const pingedAt = performance.now();
    const repeat = () => {
      for (const open of [...this.#open.values()]) {
        if (!open.sent || open.retryAt > pingedAt) continue;
        open.why = NO_ANSWER;
        this.#connection.onEvent({ type: 'republished', why: NO_ANSWER });
        this.#send(open);
      }
    };
    // Rejects when the connection is lost. After the next connection all of them are sent again.
    const pinged = this.#connection.nc.flush().then(repeat, () => {});
    void pinged.finally(() => {
      this.#isPinging = false;
    });
  }

  async #expired(open: OpenPublish): Promise<void> {
    const { connected, names } = this.#connection;
    let reason = connected ? open.why : 'disconnected';
    if (reason === NO_LEADER) {
      // They do not expire again while the PING is open. An ack that arrives in the meantime counts.
      open.deadline = Number.POSITIVE_INFINITY;
      const stream = names.streamOf(open.subject);
      if (await this.#connection.isMissing(stream)) reason = `${stream}: ${STREAM_MISSING}`;
      if (!this.#open.has(open.token)) return;
    }
    this.#settle(open, new LogUnavailable(`not acknowledged in time: ${reason}`));
  }

  /** Sends open publishes again in their original order. By their ids the server recognizes those that it stored before the disconnect. */
  #resend(): void {
    for (const open of [...this.#open.values()]) this.#send(open);
    this.#fill();
  }

  #rejectAll(error: LogUnavailable): void {
    for (const open of [...this.#open.values(), ...this.#waiting, ...this.#roomWaiters]) open.reject(error);
    this.#open.clear();
    this.#roomWaiters = [];
    this.#waiting = [];
    this.#openBytes = 0;
    this.#waitingBytes = 0;
  }
}

function toError(ack: Exclude<Ack, { verdict: 'stored' | 'retry' }>): Error {
  if (ack.verdict === 'conflict') return new LogConflict(ack.reason);
  if (ack.verdict === 'full') return new LogFull(`${ack.stream} is full: ${ack.reason}`);
  if (ack.verdict === 'too-large') return new RecordTooLarge(ack.reason);
  return new LogUnavailable(`refused: ${ack.reason}`);
}
