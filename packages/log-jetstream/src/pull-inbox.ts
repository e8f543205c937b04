import { createInbox, type Msg, nanos, type Subscription } from '@nats-io/nats-core';
import type { Connection } from './connection.ts';

/**
 * Pulls from a consumer, one request at a time, so that what is on its way is never more than was asked for. nats.js's own `consume` refills at three quarters
 * and keeps consumers it has recreated for 5 minutes; here the reader says when, and knows how each request ended.
 */
export type Pull = { batch: number; bytesMax?: number; expiresMs: number };

/** `full`: as many as asked for. `expired`: there was no more in time. `bytes`: the next message did not fit. `lost`: the consumer may be gone. */
export type PullEnd = 'full' | 'expired' | 'bytes' | 'lost';

/** The server ends a request in time; beyond this it is not there. A consumer that is gone answers nothing at all on 2.9 (503 on newer ones). */
const GRACE_MS = 1_000;

export class PullInbox {
  readonly #connection: Connection;
  readonly #subject: string;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #onMessage: (msg: Msg) => void;
  readonly #forgetDisconnect: () => void;
  #left = 0;
  #end: ((end: PullEnd) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;

  constructor(connection: Connection, stream: string, consumer: string, onMessage: (msg: Msg) => void) {
    this.#connection = connection;
    this.#subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
    this.#inbox = createInbox();
    this.#onMessage = onMessage;
    this.#subscription = connection.subscribe(this.#inbox, msg => {
      if (!msg) this.#finish('lost');
      else if (msg.subject === this.#inbox) this.#onStatus(msg);
      else this.#onDelivery(msg);
    });
    this.#forgetDisconnect = connection.onDisconnect(() => this.#finish('lost'));
  }

  async pull({ batch, bytesMax, expiresMs }: Pull): Promise<PullEnd> {
    if (this.#closing) return 'lost';
    const { promise, resolve } = Promise.withResolvers<PullEnd>();
    this.#left = batch;
    this.#end = resolve;
    this.#timer = setTimeout(() => this.#finish('lost'), expiresMs + GRACE_MS);
    const request = { batch, expires: nanos(expiresMs), ...(bytesMax && { max_bytes: bytesMax }) };
    if (!this.#connection.send(this.#subject, JSON.stringify(request), this.#inbox)) this.#finish('lost');
    return promise;
  }

  /** Ends the request; what the server has sent until then is still delivered. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#forgetDisconnect();
    this.#finish('lost');
    if (this.#subscription.isClosed()) return;
    if (this.#connection.connected) await this.#subscription.drain().catch(() => {});
    else this.#subscription.unsubscribe();
  }

  #onDelivery(msg: Msg): void {
    this.#left -= 1;
    this.#onMessage(msg);
    if (this.#left === 0) this.#finish('full');
  }

  #onStatus(msg: Msg): void {
    const code = msg.headers?.code ?? 0;
    const description = msg.headers?.description ?? '';
    if (code === 100) return;
    const left = msg.headers?.get('Nats-Pending-Messages');
    // What the server counts as delivered and did not come was lost between us.
    const allCame = !left || Number(left) === this.#left;
    if (code === 404 || code === 408) this.#finish(allCame ? 'expired' : 'lost');
    else if (code === 409 && description.includes('Exceeds MaxBytes')) this.#finish(allCame ? 'bytes' : 'lost');
    else if (code === 409 && description.includes('Batch Completed')) this.#finish(allCame ? 'full' : 'lost');
    else this.#finish('lost');
  }

  #finish(end: PullEnd): void {
    clearTimeout(this.#timer);
    const resolve = this.#end;
    this.#end = undefined;
    resolve?.(end);
  }
}
