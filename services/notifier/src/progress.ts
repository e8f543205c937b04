import type { KeyValue, PushProgressEntry } from '@hopline/log';
import type { PendingDelivery } from './pending-delivery.ts';

/**
 * The durable progress of one webhook. Every write expects the revision of the previous one. So if two notifiers both believe that they own
 * a shard, one of them fails with LogConflict after each has sent at most one delivery.
 */
export class Progress {
  readonly #bucket: KeyValue<PushProgressEntry>;
  readonly #key: string;
  #revision: number;
  #value: PushProgressEntry;

  private constructor(bucket: KeyValue<PushProgressEntry>, key: string, value: PushProgressEntry, revision: number) {
    this.#bucket = bucket;
    this.#key = key;
    this.#value = value;
    this.#revision = revision;
  }

  /** `config`: revision of the configuration. `after`: delivery begins with the event after this generation. */
  static async load(
    bucket: KeyValue<PushProgressEntry>,
    key: string,
    { config, after }: { config: number; after: number },
  ): Promise<Progress> {
    const found = await bucket.get(key);
    const fresh = { config, generation: after, seq: 0, failures: 0 };
    return new Progress(bucket, key, found?.value.config === config ? found.value : fresh, found?.revision ?? 0);
  }

  get value(): Readonly<PushProgressEntry> {
    return this.#value;
  }

  /**
   * Records, before sending, that the next delivery holds all events up to this generation. A retry by any notifier then has the same
   * cursor and body, and a notifier that lost the shard fails here, before it sends. Otherwise a notifier that resumes after a pause could
   * send an event that its successor has already merged with the next one, and the receiver would get text twice.
   */
  async begin(generation: number): Promise<void> {
    if (this.#value.sending === generation) return;
    await this.#write({ ...this.#value, sending: generation });
  }

  /** Records an accepted delivery and the start of `next` in one write, so that under load each delivery costs only one write. */
  async delivered(
    { generation, seq, terminal }: Pick<PendingDelivery, 'generation' | 'seq' | 'terminal'>,
    next?: PendingDelivery,
  ): Promise<void> {
    const { config } = this.#value;
    const sending = next && { sending: next.generation };
    await this.#write({ config, generation, seq, failures: 0, ...sending, ...(terminal && { over: 'delivered' }) });
  }

  /** Ends the webhook, because its last event was delivered or it is abandoned. */
  async finish(over: 'delivered' | 'abandoned'): Promise<void> {
    await this.#write({ ...this.#value, over });
  }

  /** Records an attempt that failed at `at` (epoch milliseconds). Without `retryMs` the webhook is abandoned. */
  async failed(failure: { failures: number; failingSince: number; at: number; retryMs: number | undefined }): Promise<void> {
    const { failures, failingSince, at, retryMs } = failure;
    const { retryAt: _at, retryMs: _ms, ...value } = this.#value;
    const next = retryMs === undefined ? ({ over: 'abandoned' } as const) : { retryAt: at + retryMs, retryMs };
    await this.#write({ ...value, failures, failingSince, ...next });
  }

  async #write(value: PushProgressEntry): Promise<void> {
    const write =
      this.#revision === 0 ? this.#bucket.create(this.#key, value) : this.#bucket.update(this.#key, value, this.#revision);
    this.#revision = await write;
    this.#value = value;
  }
}
