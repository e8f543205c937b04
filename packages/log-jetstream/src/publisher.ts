import { backoffMs, LogConflict, LogUnavailable, RecordTooLarge } from '@hopline/log';
import { createInbox, type Msg, type MsgHdrs, nuid } from '@nats-io/nats-core';
import { type Ack, parseAck } from './ack.ts';
import { encodeHeaders, type RecordHeaders } from './codec.ts';
import type { Connection } from './connection.ts';

/**
 * Publishes to streams and waits for their acks: one subscription for all answers and a map of what is open, about 3 times `js.publish` (measured 111 k/s against
 * 80 k/s at 64 in flight, 191 k/s against 65 k/s at 1024). Bounded in count and bytes. A publish without an answer is sent again with the same message id, so it is
 * stored once. While disconnected nothing is sent: nats.js would lose it without a word.
 */
const ACK_TIMEOUT_MS = 2_000;
/** How long a publish is tried when the caller does not say: longer than an election (4-9 s). */
const PUBLISH_TIMEOUT_MS = 20_000;
const IN_FLIGHT_MAX = 512;
const IN_FLIGHT_BYTES_MAX = 16 * 1024 * 1024;
/** What may wait for its turn; beyond it a publish fails at once instead of filling the memory of a process whose log is away. */
const WAITING_BYTES_MAX = 64 * 1024 * 1024;
const RETRY_MS_BASE = 50;
const RETRY_MS_MAX = 1_000;
/** One timer for all open publishes. */
const SWEEP_MS = 25;
const NO_ANSWER = 'no answer';

export type PublishOptions = RecordHeaders & { timeoutMs?: number | undefined; more?: Record<string, string> };

type Open = {
  token: string;
  subject: string;
  payload: Uint8Array;
  headers: MsgHdrs;
  deadline: number;
  failures: number;
  /** When it is to be sent again if nothing came. */
  retryAt: number;
  /** Sent, and nothing has come yet; else it waits to be sent again. */
  sent: boolean;
  why: string;
  resolve: (ack: { seq: number; duplicate: boolean }) => void;
  reject: (error: Error) => void;
};

export class Publisher {
  readonly #connection: Connection;
  readonly #bytesMax: number;
  readonly #ackTimeoutMs: number;
  readonly #inbox = `${createInbox()}.`;
  readonly #open = new Map<string, Open>();
  #waiting: Open[] = [];
  #openBytes = 0;
  #waitingBytes = 0;
  #sweeping = false;

  constructor(connection: Connection, options: { recordBytesMax: number; ackTimeoutMs?: number | undefined }) {
    this.#connection = connection;
    this.#bytesMax = options.recordBytesMax;
    this.#ackTimeoutMs = options.ackTimeoutMs ?? ACK_TIMEOUT_MS;
    connection.subscribe(`${this.#inbox}*`, msg => msg && this.#onAnswer(msg));
    connection.onReconnect(() => this.#resend());
    connection.closed.addEventListener('abort', () => this.#abandon(), { once: true });
  }

  /**
   * Resolves when stored. Rejects with LogConflict (the expected sequence was not the newest), LogUnavailable (not in time; it may be stored or not),
   * RecordTooLarge.
   */
  async publish(subject: string, payload: Uint8Array, options: PublishOptions): Promise<{ seq: number; duplicate: boolean }> {
    this.#connection.requireOpen();
    if (payload.length > this.#bytesMax) {
      throw new RecordTooLarge(`a record of ${payload.length} bytes; the log takes ${this.#bytesMax}`);
    }
    if (this.#waitingBytes + payload.length > WAITING_BYTES_MAX) throw new LogUnavailable('too much waits to be published');
    const headers = encodeHeaders(options);
    for (const [name, value] of Object.entries(options.more ?? {})) headers.append(name, value);
    const { promise, resolve, reject } = Promise.withResolvers<{ seq: number; duplicate: boolean }>();
    const deadline = Date.now() + (options.timeoutMs ?? PUBLISH_TIMEOUT_MS);
    const state = { failures: 0, retryAt: 0, sent: false, why: NO_ANSWER };
    this.#waiting.push({ token: nuid.next(), subject, payload, headers, deadline, ...state, resolve, reject });
    this.#waitingBytes += payload.length;
    this.#fill();
    this.#sweep();
    return promise;
  }

  /** Sends what waits as far as there is room; a payload larger than the whole window goes alone. */
  #fill(): void {
    while (this.#waiting.length > 0 && this.#open.size < IN_FLIGHT_MAX) {
      const next = this.#waiting[0]!;
      if (this.#open.size > 0 && this.#openBytes + next.payload.length > IN_FLIGHT_BYTES_MAX) return;
      this.#waiting.shift();
      this.#waitingBytes -= next.payload.length;
      this.#open.set(next.token, next);
      this.#openBytes += next.payload.length;
      this.#send(next);
    }
  }

  #send(open: Open): void {
    open.retryAt = Date.now() + this.#ackTimeoutMs;
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
    if (ack.verdict === 'retry') {
      this.#later(open, ack.reason);
    } else {
      this.#settle(open, ack.verdict === 'stored' ? ack : toError(ack));
    }
  }

  #settle(open: Open, result: { seq: number; duplicate: boolean } | Error): void {
    if (this.#open.delete(open.token)) this.#openBytes -= open.payload.length;
    if (result instanceof Error) open.reject(result);
    else open.resolve({ seq: result.seq, duplicate: result.duplicate });
    this.#fill();
  }

  #later(open: Open, why: string): void {
    open.failures += 1;
    open.sent = false;
    open.why = why;
    open.retryAt = Date.now() + backoffMs(open.failures, RETRY_MS_BASE, RETRY_MS_MAX);
    this.#connection.onEvent({ type: 'republished', why });
  }

  #sweep(): void {
    if (this.#sweeping) return;
    this.#sweeping = true;
    setTimeout(() => {
      this.#sweeping = false;
      this.#expire(Date.now());
      if (this.#open.size + this.#waiting.length > 0) this.#sweep();
    }, SWEEP_MS);
  }

  #expire(now: number): void {
    const late = (open: Open) => open.deadline <= now;
    for (const open of this.#waiting.filter(late)) {
      this.#waitingBytes -= open.payload.length;
      open.reject(new LogUnavailable('too much waits to be published'));
    }
    this.#waiting = this.#waiting.filter(open => !late(open));
    for (const open of [...this.#open.values()]) {
      if (late(open)) {
        const reason = this.#connection.connected ? open.why : 'disconnected';
        this.#settle(open, new LogUnavailable(`not acknowledged in time: ${reason}`));
      } else if (open.retryAt <= now && this.#connection.connected) {
        if (open.sent) {
          open.why = NO_ANSWER;
          this.#connection.onEvent({ type: 'republished', why: NO_ANSWER });
        }
        this.#send(open);
      }
    }
  }

  /** In the order of the first time; what was stored before the cut is recognised by its id. */
  #resend(): void {
    for (const open of [...this.#open.values()]) this.#send(open);
    this.#fill();
  }

  #abandon(): void {
    for (const open of [...this.#open.values(), ...this.#waiting]) open.reject(new LogUnavailable('the log is closed'));
    this.#open.clear();
    this.#waiting = [];
    this.#openBytes = 0;
    this.#waitingBytes = 0;
  }
}

function toError(ack: Exclude<Ack, { verdict: 'stored' | 'retry' }>): Error {
  if (ack.verdict === 'conflict') return new LogConflict(ack.reason);
  if (ack.verdict === 'too-large') return new RecordTooLarge(ack.reason);
  return new LogUnavailable(`refused: ${ack.reason}`);
}
