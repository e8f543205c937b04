import type { Takeover } from '@hopline/events';
import { backoffMs, LogConflict, type ShardProgress, sleepUnlessAborted } from '@hopline/log';
import { type HopMetrics, LINE, type Logger, ShardLines } from '@hopline/telemetry';
import { Shard, type ShardContext } from './shard.ts';

/**
 * Pause before a failed shard restarts, with full jitter and growing while the shard makes no progress. Each restart reads the lease and
 * opens a consumer. Without the growing pause, a log that refuses immediately (no permission, a full account) would get ten restarts per
 * second for each shard.
 */
const RESTART_MS_MIN = 100;
/** If a log is late for many shards at once, frequent restarts would keep it late (ADR 216). */
const RESTART_MS_MAX = 30_000;
/** If a shard has not failed for this long, it restarts as quickly as after its first failure. */
const FORGET_MS = 2 * 60_000;

type OwnedShardsOptions = {
  context: Omit<ShardContext, 'onFailure' | 'owned'>;
  /** Stops a shard and starts it again from its checkpoint, unless its lease is lost. */
  restart: (shard: number) => Promise<void>;
  metrics: Pick<HopMetrics, 'ownedShards' | 'takeovers' | 'appendConflicts' | 'shardRestarts'>;
  logger: Logger;
};

/** Consecutive failures of a shard without progress in between. */
type Failures = { count: number; checkpoint: number; atMs: number };

/** The shards whose leases this relay holds. Folds each until its lease is released, and restarts a failed one. */
export class OwnedShards {
  readonly #options: OwnedShardsOptions;
  readonly #lines: ShardLines;
  readonly #running = new Map<number, Shard>();
  readonly #failures = new Map<number, Failures>();
  readonly #stop = new AbortController();

  constructor(options: OwnedShardsOptions) {
    this.#options = options;
    this.#lines = new ShardLines(options.logger);
  }

  get(index: number): Shard | undefined {
    return this.#running.get(index);
  }

  /** Records of each shard that are stored but not folded. */
  lags(): [number, { shard: number }][] {
    return [...this.#running.values()].map(shard => [shard.lag, { shard: shard.index }]);
  }

  /** Records of each shard that were read since this relay took the shard. */
  recordsRead(): [number, { shard: number }][] {
    return [...this.#running.values()].map(({ recordsRead, index: shard }) => [recordsRead, { shard }]);
  }

  /** Age of the oldest input of each shard that is not folded, in seconds. */
  oldestInputs(nowMs: number): [number, { shard: number }][] {
    return [...this.#running.values()].map(shard => {
      const { oldestInputAt = nowMs, index } = shard;
      return [Math.max(0, nowMs - oldestInputAt) / 1_000, { shard: index }];
    });
  }

  start(index: number, progress: ShardProgress, cause: Takeover['cause']): void {
    const { context, metrics } = this.#options;
    this.#lines.acquired(index, cause, progress.checkpoint);
    metrics.ownedShards.add(1);
    // Counters are created at startup, because a counter that first appears with an event would hide that event from every rate.
    for (const reason of ['conflict', 'log_fault'] as const) metrics.shardRestarts.add(0, { reason, shard: index });
    if (cause !== 'restarted') {
      metrics.takeovers.add(1, { reason: cause });
      this.#failures.delete(index);
    }
    const owned = { at: Date.now(), cause };
    const shard = new Shard(index, progress, { ...context, owned, onFailure: error => this.#failed(shard, error) });
    this.#running.set(index, shard);
    shard.start();
  }

  /** Resolves with the shard's progress; undefined if the shard is not running. */
  async stop(index: number): Promise<ShardProgress | undefined> {
    const shard = this.#running.get(index);
    if (shard === undefined) return undefined;
    this.#running.delete(index);
    this.#options.metrics.ownedShards.add(-1);
    await shard.stop();
    this.#lines.released(index, shard.checkpoint);
    return shard.progress;
  }

  /** Prevents further restarts while the relay releases its leases. */
  close(): void {
    this.#stop.abort();
  }

  /** Logs at once which shards were acquired and released. */
  flushLines(): void {
    this.#lines.flush();
  }

  #failed({ index, checkpoint }: Shard, error: unknown): void {
    const { metrics, logger } = this.#options;
    const isConflict = error instanceof LogConflict;
    if (isConflict) metrics.appendConflicts.add(1);
    metrics.shardRestarts.add(1, { reason: isConflict ? 'conflict' : 'log_fault', shard: index });
    logger.warn({ shard: index, err: error }, isConflict ? LINE.shardConflict : LINE.shardFailed);
    const before = this.#failures.get(index);
    const atMs = this.#options.context.now();
    const isRepeated = before !== undefined && checkpoint <= before.checkpoint && atMs - before.atMs < FORGET_MS;
    const count = isRepeated ? before.count + 1 : 1;
    this.#failures.set(index, { count, checkpoint, atMs });
    void this.#restartAfter(backoffMs(count, RESTART_MS_MIN, RESTART_MS_MAX, RESTART_MS_MIN), index);
  }

  async #restartAfter(ms: number, index: number): Promise<void> {
    const { restart, logger } = this.#options;
    await sleepUnlessAborted(ms, this.#stop.signal);
    if (this.#stop.signal.aborted) return;
    await restart(index).catch(fault => logger.error({ shard: index, err: fault }, LINE.shardRestartFailed));
  }
}
