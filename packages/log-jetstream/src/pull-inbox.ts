import { type Msg, nanos, type Subscription } from '@nats-io/nats-core';
import type { Connection } from './connection.ts';
import { headersOf } from './message-headers.ts';

/** A message from a consumer, with the delivery metadata of its reply subject. */
export type Delivery = {
  msg: Msg;
  /** Stream sequence. */
  seq: number;
  /** 1, 2, 3, … per consumer: a gap is a lost message. */
  consumerSeq: number;
  /** Delivery count of this message, 1-based. */
  deliveries: number;
  /** Epoch milliseconds at which the stream stored the message. */
  storedAt: number;
  /** Messages for the consumer that were not delivered yet. */
  pending: number;
};

/**
 * `heartbeatMs`: interval at which the server confirms that it still has the request and how many messages its consumer has sent, so that the loss of a
 * long request is noticed as soon as that of a short one. Only for a consumer that only this inbox pulls from.
 */
export type Pull = { batch: number; bytesMax?: number; expiresMs: number; heartbeatMs?: number };

/**
 * `full`: the batch is complete. `expired`: no more messages in time. `bytes`: the next message exceeds max_bytes. `lost`: the
 * consumer may be gone.
 */
export type PullEnd = 'full' | 'expired' | 'bytes' | 'lost';

/**
 * The server ends a request in time. If it does not within this grace period, which allows for a slow server of the consumer, the inbox
 * sends a PING to its own server and counts the request as lost when the answer arrives. On 2.9 a request to a missing consumer is never
 * answered (503 on newer servers).
 */
const GRACE_MS = 4_000;
/**
 * The same grace period for a heartbeat. A server in lame duck mode removes the consumers of readers without reporting it, so a shorter
 * period makes the pause in the texts shorter (ADR 258).
 */
const HEARTBEAT_GRACE_MS = 2_500;

/**
 * Pulls from a consumer, one request at a time, so that no more messages are in flight than requested. The reader decides when to pull, and
 * learns how each request ended. nats.js's own `consume` refills at three quarters instead, and keeps recreated consumers for 5 minutes.
 */
export class PullInbox {
  readonly #connection: Connection;
  readonly #subject: string;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #onDelivery: (delivery: Delivery) => void;
  readonly #onIdle: ((upTo: number) => void) | undefined;
  readonly #removeDisconnectListener: () => void;
  #left = 0;
  #received = 0;
  #end: ((end: PullEnd) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Whether each received message proves that the request is not lost. */
  #hasHeartbeats = false;
  /** The request is late, and the answer to a PING is awaited. */
  #isLate = false;
  #closing: Promise<void> | undefined;

  /** `onIdle`: called with the sequence up to which the server has looked for messages, when a heartbeat shows that it has delivered all. */
  constructor(
    connection: Connection,
    stream: string,
    consumer: string,
    onDelivery: (delivery: Delivery) => void,
    onIdle?: (upTo: number) => void,
  ) {
    this.#connection = connection;
    this.#subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
    this.#inbox = connection.createInbox();
    this.#onDelivery = onDelivery;
    this.#onIdle = onIdle;
    const onMsg = (msg: Msg) => (msg.subject === this.#inbox ? this.#onStatus(msg) : this.#onMessage(msg));
    this.#subscription = connection.subscribe(this.#inbox, onMsg, () => this.#finish('lost'));
    this.#removeDisconnectListener = connection.onDisconnect(() => this.#finish('lost'));
  }

  /** Messages that the open request may still deliver. */
  get left(): number {
    return this.#end === undefined ? 0 : this.#left;
  }

  async pull({ batch, bytesMax, expiresMs, heartbeatMs }: Pull): Promise<PullEnd> {
    if (this.#closing) return 'lost';
    const { promise, resolve } = Promise.withResolvers<PullEnd>();
    this.#left = batch;
    this.#end = resolve;
    this.#hasHeartbeats = heartbeatMs !== undefined;
    const lateMs = heartbeatMs === undefined ? expiresMs + GRACE_MS : heartbeatMs + HEARTBEAT_GRACE_MS;
    this.#timer = setTimeout(() => this.#onLate(), lateMs);
    const request = {
      batch,
      expires: nanos(expiresMs),
      ...(bytesMax && { max_bytes: bytesMax }),
      ...(heartbeatMs !== undefined && { idle_heartbeat: nanos(heartbeatMs) }),
    };
    if (!this.#connection.send(this.#subject, JSON.stringify(request), this.#inbox)) this.#finish('lost');
    return promise;
  }

  /** Ends the request. Messages that the server has already sent are still delivered. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#removeDisconnectListener();
    this.#finish('lost');
    if (this.#subscription.isClosed()) return;
    const { connected, closed } = this.#connection;
    if (!connected || closed.aborted) return this.#subscription.unsubscribe();
    // nats.js never settles a drain that is interrupted by the end of its connection.
    const ended = Promise.withResolvers<void>();
    const end = () => ended.resolve();
    closed.addEventListener('abort', end, { once: true });
    await Promise.race([this.#subscription.drain().catch(() => {}), ended.promise]);
    closed.removeEventListener('abort', end);
  }

  #onMessage(msg: Msg): void {
    this.#left -= 1;
    this.#received += 1;
    if (this.#hasHeartbeats) this.#onSign();
    const delivery = parseDelivery(msg);
    // The server always delivers with such a reply subject, so without one the reader must not rely on what follows.
    if (delivery === undefined) this.#finish('lost');
    else this.#onDelivery(delivery);
    if (this.#left === 0) this.#finish('full');
  }

  #onStatus(msg: Msg): void {
    const headers = headersOf(msg);
    const { code = 0, description = '' } = headers ?? {};
    if (code === 100) {
      const sent = headers?.get('Nats-Last-Consumer');
      if (sent && Number(sent) !== this.#received) {
        this.#finish('lost');
        return;
      }
      this.#onSign();
      const upTo = headers?.get('Nats-Last-Stream');
      if (sent && upTo) this.#onIdle?.(Number(upTo));
      return;
    }
    const left = headers?.get('Nats-Pending-Messages');
    // Messages that the server counts as delivered, but that have not arrived, are lost.
    const isComplete = !left || Number(left) === this.#left;
    if (code === 404 || code === 408) this.#finish(isComplete ? 'expired' : 'lost');
    else if (code === 409 && description.includes('Exceeds MaxBytes')) this.#finish(isComplete ? 'bytes' : 'lost');
    else if (code === 409 && description.includes('Batch Completed')) this.#finish(isComplete ? 'full' : 'lost');
    else this.#finish('lost');
  }

  /** The server has the request. */
  #onSign(): void {
    this.#isLate = false;
    this.#timer?.refresh();
  }

  /**
   * Messages that the server sent before it answered a PING arrive before that answer. So no request counts as lost just because a server
   * is slow or this process was suspended.
   */
  #onLate(): void {
    this.#isLate = true;
    const end = this.#end;
    const lose = () => {
      if (this.#isLate && this.#end === end) this.#finish('lost');
    };
    // Rejects when the connection is lost; the request is then lost with it.
    this.#connection.nc.flush().then(lose, () => {});
  }

  #finish(end: PullEnd): void {
    this.#isLate = false;
    clearTimeout(this.#timer);
    const resolve = this.#end;
    this.#end = undefined;
    resolve?.(end);
  }
}

const NANO_DIGITS_OF_MS = 6;
const PREFIX = '$JS.ACK.';
const DOT = 46;
const ZERO = 48;
/**
 * Positions at which the tokens of the current subject begin. The array is reused, because a reader of the whole log parses one subject per
 * message.
 */
const starts: number[] = [];

/**
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.<seq>.<consumerSeq>.<nanoseconds>.<pending>`, or with `<domain>.<account>` after ACK
 * and a random token at the end (written by newer servers, 2.15 by default). Undefined for anything else.
 */
export function parseDelivery(msg: Msg): Delivery | undefined {
  const { reply } = msg;
  if (reply?.startsWith(PREFIX) !== true) return undefined;
  let tokens = 0;
  starts[tokens++] = 0;
  for (let index = PREFIX.length - 1; index < reply.length; index++)
    if (reply.charCodeAt(index) === DOT) starts[tokens++] = index + 1;
  // `$JS` and `ACK` are one token here.
  const at = tokens === 8 ? 3 : tokens >= 10 ? 5 : undefined;
  if (at === undefined) return undefined;
  starts[tokens] = reply.length + 1;
  const numberAt = (token: number, cut = 0) => digits(reply, starts[token]!, starts[token + 1]! - 1 - cut);
  return {
    msg,
    deliveries: numberAt(at),
    seq: numberAt(at + 1),
    consumerSeq: numberAt(at + 2),
    storedAt: numberAt(at + 3, NANO_DIGITS_OF_MS),
    pending: numberAt(at + 4),
  };
}

/** NaN for anything but digits. */
function digits(text: string, start: number, end: number): number {
  let value = 0;
  for (let index = start; index < end; index++) {
    const digit = text.charCodeAt(index) - ZERO;
    if (digit < 0 || digit > 9) return Number.NaN;
    value = value * 10 + digit;
  }
  return value;
}
