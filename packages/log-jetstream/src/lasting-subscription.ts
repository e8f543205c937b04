import { backoffMs } from '@hopline/log';
import type { Msg, Subscription } from '@nats-io/nats-core';
import type { Connection } from './connection.ts';
import { pause, retry } from './retry.ts';

const RETRY_MS_BASE = 1_000;
const RETRY_MS_MIN = 250;
/** Longest pause between two tries. It is long because this process and the server both log each rejected try. */
const RETRY_MS_MAX = 30_000;

type LastingSubscriptionOptions = {
  onMsg: (msg: Msg) => void;
  /** Called when the server has rejected the subscription, which then receives nothing. */
  onDenied?: () => void;
  /** Called when the subscription receives again. */
  onPermitted?: () => void;
  /** Subscribers of the same queue share the messages. */
  queue?: string;
  /** Ends the subscription. Absent: it lasts as long as the connection. */
  signal?: AbortSignal;
};

/**
 * A subscription for the life of a service. nats.js repeats it after a reconnect, but forgets a rejected one, even
 * if an operator changes permissions at run time. A rejected one is tried again, because the permission may be granted again.
 */
export class LastingSubscription {
  readonly #connection: Connection;
  readonly #subject: string;
  readonly #options: LastingSubscriptionOptions;
  readonly #ended: AbortSignal;
  #subscription: Subscription;
  #isRecovering = false;

  constructor(connection: Connection, subject: string, options: LastingSubscriptionOptions) {
    this.#connection = connection;
    this.#subject = subject;
    this.#options = options;
    const { signal } = options;
    this.#ended = signal === undefined ? connection.closed : AbortSignal.any([signal, connection.closed]);
    this.#subscription = this.#subscribe();
    signal?.addEventListener('abort', () => this.#subscription.unsubscribe(), { once: true });
  }

  #subscribe(): Subscription {
    const { onMsg, queue } = this.#options;
    const onRejected = () => {
      if (!this.#isRecovering) void this.#recover();
    };
    return this.#connection.subscribe(this.#subject, onMsg, onRejected, queue);
  }

  async #recover(): Promise<void> {
    this.#isRecovering = true;
    this.#options.onDenied?.();
    for (let failures = 1; ; failures += 1) {
      await pause(this.#connection, backoffMs(failures, RETRY_MS_BASE, RETRY_MS_MAX, RETRY_MS_MIN), this.#ended);
      if (this.#ended.aborted) return;
      this.#subscription = this.#subscribe();
      if (await this.#isPermitted()) break;
      this.#subscription.unsubscribe();
    }
    this.#isRecovering = false;
    this.#options.onPermitted?.();
  }

  /** The server rejects a subscription before it answers a later request. */
  async #isPermitted(): Promise<boolean> {
    const flush = () => this.#connection.nc.flush();
    const isAnswered = await retry(this.#connection, this.#subject, flush, { signal: this.#ended }).then(
      () => true,
      () => false,
    );
    return isAnswered && !this.#subscription.isClosed();
  }
}
