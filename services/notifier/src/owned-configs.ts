import { isTaskId, shardOf } from '@hopline/events';
import { type Change, followBucket, type KeyValue, type Log } from '@hopline/log';

/** The shard a configuration belongs to: that of its task; undefined for a key that is none. */
function shardOfConfig(key: string, shards: number): number | undefined {
  const [taskId = '', id, more] = key.split('.');
  return id !== undefined && more === undefined && isTaskId(taskId) ? shardOf(taskId, shards) : undefined;
}

export type OwnedConfigsOptions = {
  log: Pick<Log, 'pushConfigs' | 'pushProgress' | 'shards'>;
  signal: AbortSignal;
  want: (key: string, shard: number, revision: number) => void;
  drop: (key: string) => void;
  retain: (keys: ReadonlySet<string>) => void;
  fault: (error: unknown) => void;
};

/**
 * Which configurations are to be followed here: those of owned shards that are not over. Nothing is kept of the others; when a shard is acquired both buckets are read through
 * once (so a taken over shard costs one read, not one per configuration), and every later change comes by itself.
 */
export class OwnedConfigs {
  readonly #options: OwnedConfigsOptions;
  readonly #owned = new Set<number>();
  /** Acquired, and not read through yet. */
  readonly #unread = new Set<number>();
  #isReading = false;
  #seen: Set<string> | undefined;

  constructor(options: OwnedConfigsOptions) {
    this.#options = options;
  }

  /** Resolves when the bucket of configurations can be followed. */
  async start(): Promise<void> {
    const { log, signal, drop, retain, fault } = this.#options;
    await followBucket(log.pushConfigs, signal, {
      begin: () => {
        this.#seen = new Set();
      },
      change: change => {
        if (change.value === undefined) {
          this.#seen?.delete(change.key);
          drop(change.key);
        } else if (this.#seen === undefined) this.#want(change, this.#owned);
        else this.#seen.add(change.key);
      },
      ready: () => {
        // What was deleted while the bucket could not be followed has said nothing; what was written is read through, as after a takeover: most of it is over.
        if (this.#seen !== undefined) retain(this.#seen);
        this.#seen = undefined;
        this.#readLater(this.#owned);
      },
      lost: fault,
    });
  }

  acquire(shard: number): void {
    this.#owned.add(shard);
    this.#readLater([shard]);
  }

  release(shard: number): void {
    this.#owned.delete(shard);
    this.#unread.delete(shard);
  }

  #want({ key, revision }: { key: string; revision: number }, shards: ReadonlySet<number>): void {
    const shard = shardOfConfig(key, this.#options.log.shards);
    if (shard !== undefined && shards.has(shard) && this.#owned.has(shard)) this.#options.want(key, shard, revision);
  }

  #readLater(shards: Iterable<number>): void {
    for (const shard of shards) this.#unread.add(shard);
    if (this.#isReading || this.#unread.size === 0) return;
    this.#isReading = true;
    void this.#readAll();
  }

  async #readAll(): Promise<void> {
    // Shards come several at a time: one reading is enough for all that were acquired in one round.
    await Promise.resolve();
    while (this.#unread.size > 0 && !this.#options.signal.aborted) {
      const shards = new Set(this.#unread);
      // Before the reading: a shard that is lost and won back meanwhile must be read anew.
      this.#unread.clear();
      try {
        await this.#readThrough(shards);
      } catch (error) {
        for (const shard of shards) if (this.#owned.has(shard)) this.#unread.add(shard);
        this.#options.fault(error);
        await new Promise(resolve => setTimeout(resolve, REREAD_MS));
      }
    }
    // In one step with the condition above: a shard that is acquired after it finds that nobody reads.
    this.#isReading = false;
  }

  async #readThrough(shards: ReadonlySet<number>): Promise<void> {
    const { log, signal } = this.#options;
    const over = new Map<string, number>();
    for await (const { key, value } of entries(log.pushProgress, signal)) {
      if (value.over !== undefined && shards.has(shardOfConfig(key, log.shards) ?? -1)) over.set(key, value.config);
    }
    for await (const entry of entries(log.pushConfigs, signal)) {
      if (over.get(entry.key) !== entry.revision) this.#want(entry, shards);
    }
  }
}

/** After a reading that failed, milliseconds. */
const REREAD_MS = 500;

type Present<V> = { key: string; value: V; revision: number };

/** What stands in a bucket now. */
async function* entries<V>(bucket: KeyValue<V>, signal: AbortSignal): AsyncGenerator<Present<V>> {
  for await (const change of bucket.watch(signal)) {
    if (change.type === 'ready') return;
    if (isPresent(change)) yield change;
  }
}

function isPresent<V>(
  change: Extract<Change<V>, { type: 'entry' }>,
): change is Extract<Change<V>, { type: 'entry' }> & Present<V> {
  return change.value !== undefined;
}
