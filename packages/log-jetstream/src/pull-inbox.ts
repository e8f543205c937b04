import { type Msg, nanos, type Subscription } from '@nats-io/nats-core';
import type { Connection } from './connection.ts';

/**
 * Pulls from a consumer, one request at a time, so that no more messages are in flight than requested. nats.js's own `consume`
 * refills at three quarters and keeps recreated consumers for 5 minutes; here the reader decides when to pull, and learns how
 * each request ended.
 */
/**
 * `heartbeatMs`: the server shows that often that it still has the request, and how many messages its consumer has sent, so that a long one is found
 * lost as soon as a short one. Only for a consumer that only this inbox pulls from.
 */
export type Pull = { batch: number; bytesMax?: number; expiresMs: number; heartbeatMs?: number };

/**
 * `full`: the batch is complete. `expired`: no more messages in time. `bytes`: the next message exceeds max_bytes. `lost`: the
 * consumer may be gone.
 */
export type PullEnd = 'full' | 'expired' | 'bytes' | 'lost';

/**
 * The server ends a request in time; after this grace it counts as lost. On 2.9 a missing consumer never answers (503 on newer
 * servers).
 */
const GRACE_MS = 1_000;

export class PullInbox {
  readonly #connection: Connection;
  readonly #subject: string;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #onMessage: (msg: Msg) => void;
  readonly #removeDisconnectListener: () => void;
  #left = 0;
  #received = 0;
  #end: ((end: PullEnd) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Whether each message proves that the request is not lost. */
  #hasHeartbeats = false;
  #closing: Promise<void> | undefined;

  constructor(connection: Connection, stream: string, consumer: string, onMessage: (msg: Msg) => void) {
    this.#connection = connection;
    this.#subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
    this.#inbox = connection.createInbox();
    this.#onMessage = onMessage;
    const onMsg = (msg: Msg) => (msg.subject === this.#inbox ? this.#onStatus(msg) : this.#onDelivery(msg));
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
    this.#timer = setTimeout(() => this.#finish('lost'), (heartbeatMs ?? expiresMs) + GRACE_MS);
    const request = {
      batch,
      expires: nanos(expiresMs),
      ...(bytesMax && { max_bytes: bytesMax }),
      ...(heartbeatMs !== undefined && { idle_heartbeat: nanos(heartbeatMs) }),
    };
    if (!this.#connection.send(this.#subject, JSON.stringify(request), this.#inbox)) this.#finish('lost');
    return promise;
  }

  /** Ends the request; messages that the server has sent already are still delivered. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#removeDisconnectListener();
    this.#finish('lost');
    if (this.#subscription.isClosed()) return;
    if (this.#connection.connected) await this.#subscription.drain().catch(() => {});
    else this.#subscription.unsubscribe();
  }

  #onDelivery(msg: Msg): void {
    this.#left -= 1;
    this.#received += 1;
    if (this.#hasHeartbeats) this.#timer?.refresh();
    this.#onMessage(msg);
    if (this.#left === 0) this.#finish('full');
  }

  #onStatus(msg: Msg): void {
    const code = msg.headers?.code ?? 0;
    const description = msg.headers?.description ?? '';
    if (code === 100) {
      const sent = msg.headers?.get('Nats-Last-Consumer');
      if (sent && Number(sent) !== this.#received) this.#finish('lost');
      else this.#timer?.refresh();
      return;
    }
    const left = msg.headers?.get('Nats-Pending-Messages');
    // Messages that the server counts as delivered but that have not arrived are lost.
    const isComplete = !left || Number(left) === this.#left;
    if (code === 404 || code === 408) this.#finish(isComplete ? 'expired' : 'lost');
    else if (code === 409 && description.includes('Exceeds MaxBytes')) this.#finish(isComplete ? 'bytes' : 'lost');
    else if (code === 409 && description.includes('Batch Completed')) this.#finish(isComplete ? 'full' : 'lost');
    else this.#finish('lost');
  }

  #finish(end: PullEnd): void {
    clearTimeout(this.#timer);
    const resolve = this.#end;
    this.#end = undefined;
    resolve?.(end);
  }
}
