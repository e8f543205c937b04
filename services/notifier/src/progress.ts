import type { KeyValue, PushProgressEntry } from '@hopline/log';
import type { Pending } from './pending.ts';

/**
 * How far one webhook is, durable. Every write names the revision of the one before, so of two notifiers that both believe they own a shard one is refused, with LogConflict,
 * before it could tell more than one delivery that the other tells as well.
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

  /** `config`: revision of the configuration; `after`: the generation it begins behind. */
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
   * Everything up to this generation is about to be told as one. Written before it is sent: so whoever repeats it says the same again under the same cursor, and who has lost
   * the shard is refused before it has said anything. Without it a notifier that had slept told one event that another one was telling merged with the next: text came twice.
   */
  async begin(generation: number): Promise<void> {
    if (this.#value.sending === generation) return;
    await this.#write({ ...this.#value, sending: generation });
  }

  /** It was taken; `next` is told next. One write for both: under load a delivery costs one. */
  async delivered(
    { generation, seq, terminal }: Pick<Pending, 'generation' | 'seq' | 'terminal'>,
    next?: Pending,
  ): Promise<void> {
    const { config } = this.#value;
    const sending = next && { sending: next.generation };
    await this.#write({ config, generation, seq, failures: 0, ...sending, ...(terminal && { over: 'delivered' }) });
  }

  /** Nothing is left to tell, or nothing may be told. */
  async finish(over: 'delivered' | 'abandoned'): Promise<void> {
    await this.#write({ ...this.#value, over });
  }

  async failed(failure: { failures: number; failingSince: number; retryAt: number | undefined }): Promise<void> {
    const { failures, failingSince, retryAt } = failure;
    const { retryAt: _before, ...value } = this.#value;
    const next = retryAt === undefined ? ({ over: 'abandoned' } as const) : { retryAt };
    await this.#write({ ...value, failures, failingSince, ...next });
  }

  async #write(value: PushProgressEntry): Promise<void> {
    const write =
      this.#revision === 0 ? this.#bucket.create(this.#key, value) : this.#bucket.update(this.#key, value, this.#revision);
    this.#revision = await write;
    this.#value = value;
  }
}
