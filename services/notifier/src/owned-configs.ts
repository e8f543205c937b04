import { isTaskId, type Layouts } from '@hopline/events';
import { type Change, followBucket, isWebhookCountKey, type KeyValue, type Log } from '@hopline/log';

/** Pause after a failed scan. */
const RESCAN_MS = 500;
/**
 * How long the marker of a deleted configuration stays in the bucket, so that each reader sees it. After that nothing is left of the
 * configuration. That is necessary because both buckets are small, and markers count against no caller's limit.
 */
const MARKER_MS = 60_000;

/** Shard of the configuration's task; undefined if the key is malformed. */
function shardOfConfig(key: string, layouts: Layouts): number | undefined {
  const [taskId = '', id, more] = key.split('.');
  return id !== undefined && more === undefined && isTaskId(taskId) ? layouts.shardOf(taskId) : undefined;
}

type OwnedConfigsOptions = {
  log: Pick<Log, 'pushConfigs' | 'pushProgress' | 'layouts'>;
  signal: AbortSignal;
  start: (key: string, shard: number, revision: number) => void;
  cancel: (key: string) => void;
  /** Keys of the configurations that were started and have not finished. */
  running: () => Iterable<string>;
  onError: (error: unknown) => void;
  /** Overrides MARKER_MS. */
  markerMs?: number;
};

/**
 * Finds the unfinished push configurations of owned shards, and keeps only those in memory. Starting a shard reads both buckets once, so a
 * takeover costs one scan and not one read per configuration; later changes arrive through the watch.
 */
export class OwnedConfigs {
  readonly #options: OwnedConfigsOptions;
  readonly #owned = new Set<number>();
  /** Owned shards that still need a scan. */
  readonly #unscanned = new Set<number>();
  #isScanning = false;
  /** While the bucket is read from the beginning: running configurations that have not appeared yet. */
  #missing: Set<string> | undefined;

  constructor(options: OwnedConfigsOptions) {
    this.#options = options;
  }

  /** Resolves when the watch of the configurations is established. */
  async start(): Promise<void> {
    const { log, signal, cancel, running, onError } = this.#options;
    await followBucket(log.pushConfigs, signal, {
      begin: () => {
        this.#missing = new Set(running());
      },
      change: change => {
        if (isWebhookCountKey(change.key)) return;
        if (change.value === undefined) {
          cancel(change.key);
          if (this.#owns(change.key)) this.#removeLater(change);
        } else if (this.#missing === undefined) this.#start(change, this.#owned);
        else this.#missing.delete(change.key);
      },
      ready: () => {
        // Looks for deletions that happened while the watch was down, which cause no change. Writes are found by a scan, as after a
        // takeover, because most configurations are finished.
        for (const key of this.#missing ?? []) cancel(key);
        this.#missing = undefined;
        this.#scanLater(this.#owned);
      },
      lost: onError,
    });
  }

  startShard(shard: number): void {
    this.#owned.add(shard);
    this.#scanLater([shard]);
  }

  stopShard(shard: number): void {
    this.#owned.delete(shard);
    this.#unscanned.delete(shard);
  }

  #owns(key: string): boolean {
    return this.#owned.has(shardOfConfig(key, this.#options.log.layouts) ?? -1);
  }

  #removeLater({ key, revision }: { key: string; revision: number }): void {
    const { signal, onError, markerMs = MARKER_MS } = this.#options;
    const remove = async () => {
      if (!signal.aborted) await this.#remove(key, revision).catch(onError);
    };
    setTimeout(() => void remove(), markerMs).unref();
  }

  async #remove(key: string, revision: number): Promise<void> {
    const { pushConfigs, pushProgress } = this.#options.log;
    await pushConfigs.purge(key, revision);
    const progress = await pushProgress.get(key);
    // Keeps the progress of a configuration that was set again in the meantime.
    if (progress !== undefined && progress.value.config < revision) await pushProgress.purge(key, progress.revision);
  }

  #start({ key, revision }: { key: string; revision: number }, shards: ReadonlySet<number>): void {
    const shard = shardOfConfig(key, this.#options.log.layouts);
    if (shard !== undefined && shards.has(shard) && this.#owned.has(shard)) this.#options.start(key, shard, revision);
  }

  #scanLater(shards: Iterable<number>): void {
    for (const shard of shards) this.#unscanned.add(shard);
    if (this.#isScanning || this.#unscanned.size === 0) return;
    this.#isScanning = true;
    void this.#scanAll();
  }

  async #scanAll(): Promise<void> {
    // One scan serves all shards of a lease round.
    await Promise.resolve();
    while (this.#unscanned.size > 0 && !this.#options.signal.aborted) {
      const shards = new Set(this.#unscanned);
      // Cleared before the scan, because a shard that is lost and acquired again during the scan needs another scan.
      this.#unscanned.clear();
      try {
        await this.#scan(shards);
      } catch (error) {
        for (const shard of shards) if (this.#owned.has(shard)) this.#unscanned.add(shard);
        this.#options.onError(error);
        await new Promise(resolve => setTimeout(resolve, RESCAN_MS));
      }
    }
    // Set synchronously after the loop condition, so that a shard which arrives later starts a new scan.
    this.#isScanning = false;
  }

  async #scan(shards: ReadonlySet<number>): Promise<void> {
    const { log, signal } = this.#options;
    const finished = new Map<string, number>();
    for await (const { key, value } of entries(log.pushProgress, signal)) {
      if (value.over !== undefined && shards.has(shardOfConfig(key, log.layouts) ?? -1)) finished.set(key, value.config);
    }
    for await (const entry of entries(log.pushConfigs, signal)) {
      if (finished.get(entry.key) !== entry.revision) this.#start(entry, shards);
    }
  }
}

type PresentEntry<V> = { key: string; value: V; revision: number };

/** The current entries of a bucket. */
async function* entries<V>(bucket: KeyValue<V>, signal: AbortSignal): AsyncGenerator<PresentEntry<V>> {
  for await (const change of bucket.watch(signal)) {
    if (change.type === 'ready') return;
    if (isPresent(change) && !isWebhookCountKey(change.key)) yield change;
  }
}

function isPresent<V>(
  change: Extract<Change<V>, { type: 'entry' }>,
): change is Extract<Change<V>, { type: 'entry' }> & PresentEntry<V> {
  return change.value !== undefined;
}
