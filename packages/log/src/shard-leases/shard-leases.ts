import { setTimeout as sleep } from 'node:timers/promises';
import { LogConflict } from '../errors.ts';
import { followBucket } from '../follow-bucket.ts';
import type { KeyValue } from '../key-value.ts';
import type { LeaseValue } from '../log.ts';
import { planShare } from './fair-share.ts';
import { type LeaseKeys, LeaseView, memberKey, shardKey } from './lease-view.ts';

/** A process says that it lives this often, milliseconds. */
export const HEARTBEAT_INTERVAL_MS = 300;
/** A process that was silent for this long is taken for dead: the bound on how long its shards stand still after a SIGKILL, plus one beat. Milliseconds. */
export const LEASE_MS = 1_500;

export type LeaseOptions = {
  store: KeyValue<LeaseValue>;
  keys: LeaseKeys;
  shards: number;
  /** Unique to this life of the process. */
  instance: string;
  heartbeatMs: number;
  leaseMs: number;
  /** Monotonic milliseconds. */
  now: () => number;
  /** The shard is ours: work from this checkpoint on. */
  startShard: (shard: number, checkpoint: number) => void;
  /** The shard is to be let go: resolves with its checkpoint when nothing of it runs here any more. */
  stopShard: (shard: number) => Promise<number>;
  checkpointOf: (shard: number) => number;
  onError: (error: unknown) => void;
};

/**
 * Which shards this process works on. A hint for efficiency only: two owners of a shard do no harm, because the log lets one of them write.
 * Order rule: a shard is stopped before its lease is given up, and started after it is held.
 */
export class ShardLeases {
  readonly #context: LeaseOptions;
  readonly #view: LeaseView;
  /** One object from taking a shard to letting it go: another one is another tenure. */
  readonly #held = new Map<number, { revision: number; checkpoint: number }>();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #lastBeatAt = 0;
  #beat = 0;

  constructor(context: LeaseOptions) {
    this.#context = context;
    this.#view = new LeaseView(context.keys, context.leaseMs);
  }

  get held(): ReadonlySet<number> {
    return new Set(this.#held.keys());
  }

  /** Resolves when the bucket has been read once and the first shards were taken. */
  async start(): Promise<void> {
    const { store, now, onError: fault } = this.#context;
    await followBucket(store, this.#stop.signal, {
      begin: () => this.#view.clear(),
      change: change => this.#view.apply(change, now()),
      ready: () => {},
      // Until the bucket can be read again nobody is known to live but this process itself: it keeps what it holds and takes nothing.
      lost: fault,
    });
    await this.#round();
    this.#running = this.#loop();
  }

  /** Lets all shards go, one after the other, and takes the heartbeat back so that others need not wait for it to grow old. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    for (const shard of [...this.#held.keys()]) await this.#release(shard);
    await this.#context.store.delete(memberKey(this.#context.keys, this.#context.instance));
  }

  /**
   * The shard failed here (somebody else appended, or the log was away): stop it and begin again from its checkpoint if it is still ours. Asks until the log answers: the heartbeat goes on as soon as
   * it is back, so nobody else would ever take a shard that stayed stopped here.
   */
  async restart(shard: number): Promise<void> {
    const held = this.#held.get(shard);
    if (held === undefined) return;
    const { instance, startShard: acquired, stopShard: released } = this.#context;
    const checkpoint = Math.max(held.checkpoint, await released(shard));
    const isOurs = () => this.#held.get(shard) === held && !this.#stop.signal.aborted;
    const lease = await this.#leaseOf(shard, isOurs);
    // Let go meanwhile, or let go and taken again: then it runs already.
    if (!isOurs()) return;
    if (lease?.owner === instance) acquired(shard, Math.max(checkpoint, lease.checkpoint ?? 0));
    else this.#held.delete(shard);
  }

  /** Somebody else did work of this shard: lets it go if its lease says that it is theirs, which the view may not know yet. */
  async confirm(shard: number): Promise<void> {
    const { store, keys, instance, stopShard: released } = this.#context;
    const entry = await store.get(shardKey(keys, shard));
    if (entry?.value.owner !== instance && this.#held.delete(shard)) await released(shard);
  }

  /** Who owns a shard, read from the log and not from the view; undefined when nobody does, or when it is of no interest any more. */
  async #leaseOf(shard: number, isWanted: () => boolean): Promise<LeaseValue | undefined> {
    const { store, keys, heartbeatMs: beatMs, onError: fault } = this.#context;
    while (isWanted()) {
      try {
        return (await store.get(shardKey(keys, shard)))?.value;
      } catch (error) {
        fault(error);
        await sleep(beatMs, undefined, { signal: this.#stop.signal }).catch(() => {});
      }
    }
    return undefined;
  }

  async #loop(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await sleep(this.#context.heartbeatMs, undefined, { signal: this.#stop.signal }).catch(() => {});
      if (this.#stop.signal.aborted) return;
      try {
        await this.#round();
      } catch (error) {
        this.#context.onError(error);
      }
    }
  }

  async #round(): Promise<void> {
    const { store, keys, instance, now, shards } = this.#context;
    await store.put(memberKey(keys, instance), { owner: instance, heartbeat: ++this.#beat });
    // A process that slept, or that the log did not answer, has missed everybody's heartbeat: it may not call the others dead.
    const slept = this.#lastBeatAt > 0 && now() - this.#lastBeatAt > this.#context.leaseMs;
    this.#lastBeatAt = now();
    if (slept) this.#view.forgive(now());
    const plan = planShare(this.#view.leases(shards, now()), instance);
    for (const shard of [...this.#held.keys()]) await this.#renew(shard);
    for (const shard of plan.release) if (this.#held.has(shard)) await this.#release(shard);
    for (const shard of plan.take) await this.#take(shard);
  }

  async #take(shard: number): Promise<void> {
    const { store, keys, instance, startShard: acquired } = this.#context;
    const key = shardKey(keys, shard);
    const known = this.#view.shard(shard);
    const checkpoint = known?.value.checkpoint ?? 0;
    const value = { owner: instance, checkpoint };
    const write = known === undefined ? store.create(key, value) : store.update(key, value, known.revision);
    const revision = await unlessConflict(write);
    if (revision === undefined) return;
    this.#held.set(shard, { revision, checkpoint });
    acquired(shard, checkpoint);
  }

  async #renew(shard: number): Promise<void> {
    const { store, keys, instance, checkpointOf, stopShard: released } = this.#context;
    const held = this.#held.get(shard);
    // Let go while the round was under way.
    if (held === undefined) return;
    const seen = this.#view.shard(shard);
    const lost = seen !== undefined && seen.revision > held.revision && seen.value.owner !== instance;
    const checkpoint = Math.max(held.checkpoint, checkpointOf(shard));
    if (!lost && checkpoint === held.checkpoint) return;
    const revision = lost
      ? undefined
      : await unlessConflict(store.update(shardKey(keys, shard), { owner: instance, checkpoint }, held.revision));
    if (revision !== undefined) {
      Object.assign(held, { revision, checkpoint });
      return;
    }
    this.#held.delete(shard);
    await released(shard);
  }

  async #release(shard: number): Promise<void> {
    const { store, keys, stopShard: released } = this.#context;
    const held = this.#held.get(shard)!;
    this.#held.delete(shard);
    const checkpoint = Math.max(held.checkpoint, await released(shard));
    await unlessConflict(store.update(shardKey(keys, shard), { owner: '', checkpoint }, held.revision));
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
