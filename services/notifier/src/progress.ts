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

  /** Several events are about to be told as one: written before, so that whoever repeats it after this process says the same again, and a receiver can drop it by its cursor. */
  async begin(generation: number): Promise<void> {
    if (this.#value.sending === generation) return;
    await this.#write({ ...this.#value, sending: generation });
  }

  async delivered({ generation, seq, terminal }: Pick<Pending, 'generation' | 'seq' | 'terminal'>): Promise<void> {
    const { config } = this.#value;
    await this.#write({ config, generation, seq, failures: 0, ...(terminal && { over: 'delivered' }) });
  }

  /** Nothing is left to tell. */
  async finish(): Promise<void> {
    await this.#write({ ...this.#value, over: 'delivered' });
  }

  async failed(failure: { failures: number; failingSince: number; retryAt: number | undefined }): Promise<void> {
    const { failures, failingSince, retryAt } = failure;
    const { retryAt: _before, ...value } = this.#value;
    const next = retryAt === undefined ? ({ over: 'given up' } as const) : { retryAt };
    await this.#write({ ...value, failures, failingSince, ...next });
  }

  async #write(value: PushProgressEntry): Promise<void> {
    const write =
      this.#revision === 0 ? this.#bucket.create(this.#key, value) : this.#bucket.update(this.#key, value, this.#revision);
    this.#revision = await write;
    this.#value = value;
  }
}
