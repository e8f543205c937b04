import { setTimeout as sleep } from 'node:timers/promises';
import { LogConflict } from '../errors.ts';
import { followBucket } from '../follow-bucket.ts';
import type { KeyValue } from '../key-value.ts';
import type { LeaseValue } from '../log.ts';
import { planShare } from './fair-share.ts';
import { type LeaseKeys, LeaseView, memberKey, shardKey } from './lease-view.ts';

/** Milliseconds between two heartbeats of a process. */
export const HEARTBEAT_INTERVAL_MS = 300;
/**
 * A process without a heartbeat for this long counts as dead, milliseconds. After a SIGKILL its shards stand still for at most
 * this and one heartbeat.
 */
export const LEASE_MS = 1_500;

export type LeaseOptions = {
  store: KeyValue<LeaseValue>;
  keys: LeaseKeys;
  shards: number;
  /** Unique to this run of the process. */
  instance: string;
  heartbeatMs: number;
  leaseMs: number;
  /** Monotonic milliseconds. */
  now: () => number;
  /** Called once the lease is held: process the shard from `checkpoint` on. */
  startShard: (shard: number, checkpoint: number) => void;
  /** Resolves with the shard's checkpoint when nothing of the shard runs in this process any more. */
  stopShard: (shard: number) => Promise<number>;
  checkpointOf: (shard: number) => number;
  onError: (error: unknown) => void;
};

/**
 * Assigns shards to processes. Leases are a hint for efficiency: two owners of a shard do no harm, because the log accepts the
 * writes of one only. Order: a shard is stopped before its lease is released, and started after its lease is held.
 */
export class ShardLeases {
  readonly #options: LeaseOptions;
  readonly #view: LeaseView;
  /** One object per tenure: a shard that was released and taken again has a new one. */
  readonly #held = new Map<number, { revision: number; checkpoint: number }>();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #lastHeartbeatAt = 0;
  #heartbeat = 0;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#view = new LeaseView(options.keys, options.leaseMs);
  }

  get held(): ReadonlySet<number> {
    return new Set(this.#held.keys());
  }

  /** Resolves when the bucket has been read once and the first shards were taken. */
  async start(): Promise<void> {
    const { store, now, onError } = this.#options;
    await followBucket(store, this.#stop.signal, {
      begin: () => this.#view.clear(),
      change: change => this.#view.apply(change, now()),
      ready: () => {},
      // The view stays empty until the bucket is read again: meanwhile this process keeps its shards and takes none.
      lost: onError,
    });
    await this.#round();
    this.#running = this.#loop();
  }

  /**
   * Releases all shards one after the other, then deletes the heartbeat, so that other processes need not wait until it is stale.
   */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    for (const shard of [...this.#held.keys()]) await this.#release(shard);
    await this.#options.store.delete(memberKey(this.#options.keys, this.#options.instance));
  }

  /**
   * Stops a shard that failed in this process (a conflict, or the log was unavailable) and starts it again from its checkpoint if
   * the lease is still held. Retries until the log answers. The heartbeat resumes with the connection, so no other process would
   * take over a shard that stays stopped here.
   */
  async restart(shard: number): Promise<void> {
    const tenure = this.#held.get(shard);
    if (tenure === undefined) return;
    const { instance, startShard, stopShard } = this.#options;
    const checkpoint = Math.max(tenure.checkpoint, await stopShard(shard));
    const isCurrent = () => this.#held.get(shard) === tenure && !this.#stop.signal.aborted;
    const lease = await this.#leaseOf(shard, isCurrent);
    // The shard was released meanwhile, or released and taken again: then it runs already.
    if (!isCurrent()) return;
    if (lease?.owner === instance) startShard(shard, Math.max(checkpoint, lease.checkpoint ?? 0));
    else this.#held.delete(shard);
  }

  /**
   * Reads the lease after another process has worked on the shard, and stops the shard if the lease is lost: the view may lag
   * behind.
   */
  async confirm(shard: number): Promise<void> {
    const { store, keys, instance, stopShard } = this.#options;
    const entry = await store.get(shardKey(keys, shard));
    if (entry?.value.owner !== instance && this.#held.delete(shard)) await stopShard(shard);
  }

  /** The lease as the log has it, not the view. Undefined when there is none, or when `isWanted` turned false. */
  async #leaseOf(shard: number, isWanted: () => boolean): Promise<LeaseValue | undefined> {
    const { store, keys, heartbeatMs, onError } = this.#options;
    while (isWanted()) {
      try {
        return (await store.get(shardKey(keys, shard)))?.value;
      } catch (error) {
        onError(error);
        await sleep(heartbeatMs, undefined, { signal: this.#stop.signal }).catch(() => {});
      }
    }
    return undefined;
  }

  async #loop(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await sleep(this.#options.heartbeatMs, undefined, { signal: this.#stop.signal }).catch(() => {});
      if (this.#stop.signal.aborted) return;
      try {
        await this.#round();
      } catch (error) {
        this.#options.onError(error);
      }
    }
  }

  async #round(): Promise<void> {
    const { store, keys, instance, now, shards } = this.#options;
    await store.put(memberKey(keys, instance), { owner: instance, heartbeat: ++this.#heartbeat });
    // A process that was suspended or cut off has missed the heartbeats of all others: it must not count them as dead.
    const wasSuspended = this.#lastHeartbeatAt > 0 && now() - this.#lastHeartbeatAt > this.#options.leaseMs;
    this.#lastHeartbeatAt = now();
    if (wasSuspended) this.#view.forgive(now());
    const plan = planShare(this.#view.leases(shards, now()), instance);
    for (const shard of [...this.#held.keys()]) await this.#renew(shard);
    for (const shard of plan.release) if (this.#held.has(shard)) await this.#release(shard);
    for (const shard of plan.take) await this.#take(shard);
  }

  async #take(shard: number): Promise<void> {
    const { store, keys, instance, startShard } = this.#options;
    const key = shardKey(keys, shard);
    const lease = this.#view.shard(shard);
    const checkpoint = lease?.value.checkpoint ?? 0;
    const value = { owner: instance, checkpoint };
    const write = lease === undefined ? store.create(key, value) : store.update(key, value, lease.revision);
    const revision = await unlessConflict(write);
    if (revision === undefined) return;
    this.#held.set(shard, { revision, checkpoint });
    startShard(shard, checkpoint);
  }

  async #renew(shard: number): Promise<void> {
    const { store, keys, instance, checkpointOf, stopShard } = this.#options;
    const tenure = this.#held.get(shard);
    // Released while the round was under way.
    if (tenure === undefined) return;
    const seen = this.#view.shard(shard);
    const isLost = seen !== undefined && seen.revision > tenure.revision && seen.value.owner !== instance;
    const checkpoint = Math.max(tenure.checkpoint, checkpointOf(shard));
    if (!isLost && checkpoint === tenure.checkpoint) return;
    const revision = isLost
      ? undefined
      : await unlessConflict(store.update(shardKey(keys, shard), { owner: instance, checkpoint }, tenure.revision));
    if (revision !== undefined) {
      Object.assign(tenure, { revision, checkpoint });
      return;
    }
    this.#held.delete(shard);
    await stopShard(shard);
  }

  async #release(shard: number): Promise<void> {
    const { store, keys, stopShard } = this.#options;
    const tenure = this.#held.get(shard)!;
    this.#held.delete(shard);
    const checkpoint = Math.max(tenure.checkpoint, await stopShard(shard));
    await unlessConflict(store.update(shardKey(keys, shard), { owner: '', checkpoint }, tenure.revision));
  }
}

async function unlessConflict(write: Promise<number>): Promise<number | undefined> {
  try {
    return await write;
  } catch (error) {
    if (error instanceof LogConflict) return undefined;
    throw error;
  }
}
