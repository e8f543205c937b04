import type { Takeover } from '@hopline/events';
import { LogConflict } from '../errors.ts';
import type { RecordMark } from '../fact-log.ts';
import { followBucket } from '../follow-bucket.ts';
import type { KeyValue } from '../key-value.ts';
import type { LeaseValue, ShardProgress } from '../log.ts';
import type { Presence } from '../presence.ts';
import { planShare } from './fair-share.ts';
import { type LeaseKeys, LeaseView, memberKey, shardKey } from './lease-view.ts';

/** Milliseconds between two heartbeats of a process. */
export const LEASE_HEARTBEAT_MS = 300;
/**
 * A process without a heartbeat for this long counts as dead. If the broker reports that it is gone, it counts as dead after only two
 * missed heartbeats, so that its shards stand still for about 0.9 s after a SIGKILL.
 */
export const LEASE_MS = 1_500;

/**
 * A lease is written again after this time even if its checkpoint is the same, because the bucket removes old entries.
 */
export const LEASE_RENEWAL_MS = 60 * 60_000;

/**
 * Maximum number of records that a released lease names as not yet checked, about 1.5 KB. The newest ones are named, because a log that has
 * lost an older record has also lost these.
 */
export const UNPROVEN_MAX = 16;
/**
 * Number of heartbeats between two writes of a lease whose progress changes all the time. A later owner reads the inputs of that time
 * again.
 */
const RENEWAL_HEARTBEATS = 3;
/**
 * Leases with changed progress that a process writes per second, on average. A process with more shards writes each lease less often;
 * summed over all its shards, later owners then read as many inputs again. 256 busy shards would otherwise cost a relay and nats-server 3 %
 * of a core.
 */
export const RENEWALS_PER_SECOND_MAX = 100;

/**
 * If the view does not show a lease within this multiple of `leaseMs` after it was written, the lease is gone: a current view never lags
 * that far.
 */
const UNSEEN_LEASES = 10;

/** Missed heartbeats of a process after which the broker is asked whether it is still connected. */
const SUSPECT_HEARTBEATS = 2;

/** Why a shard starts: it never had an owner, its owner released it, its owner died, or it failed in this process. */
type ShardStart = Takeover['cause'];

export type LeaseOptions = {
  store: KeyValue<LeaseValue>;
  presence: Presence;
  keys: LeaseKeys;
  /** Number of shards now. It grows when a layout is added. */
  shards: () => number;
  /** Unique to this run of the process. */
  instance: string;
  heartbeatMs: number;
  leaseMs: number;
  /** Monotonic milliseconds. */
  now: () => number;
  /** Called once the lease is held. Process the shard from the checkpoint on. */
  startShard: (shard: number, progress: ShardProgress, cause: ShardStart) => void;
  /** Stops a shard. Once the shard no longer runs in this process, resolves with its progress; undefined if it was not running. */
  stopShard: (shard: number) => Promise<ShardProgress | undefined>;
  /** The progress of a running shard; undefined if it does not run. A checkpoint replaces a later one if it has moved back. */
  progressOf: (shard: number) => ShardProgress | undefined;
  onError: (error: unknown) => void;
};

/**
 * Maximum number of shards whose leases are being written, or that are being stopped, at the same time. Further shards wait until some of
 * these are done.
 */
const CHANGES_MAX = 64;

/** A round that does not wait for the next heartbeat begins after this time, and takes all shards that have become free by then. */
const GATHER_MS = 10;

/** `writtenAtMs`: when this process began its last write of the lease. `isSeen`: the view has shown that write. */
type Tenure = { revision: number; progress: ShardProgress; writtenAtMs: number; isSeen?: boolean };

/**
 * Assigns shards to processes. Leases only make work efficient: two owners of a shard do no harm, because the log accepts the
 * writes of only one. A shard is stopped before its lease is released, and started after its lease is held.
 *
 * The heartbeat has its own loop, and a round does not wait for the changes that it begins, of which there is at most one per shard. So a
 * slow or lost write delays only its own shard. A write whose answer was lost may still be stored, so the view decides, not the answer. A
 * round begins with each heartbeat, and also when shards become free, because the tasks of a shard stand still until it has an owner.
 */
export class ShardLeases {
  readonly #options: LeaseOptions;
  readonly #view: LeaseView;
  /** One object per tenure: a shard that was released and taken again has a new one. */
  readonly #held = new Map<number, Tenure>();
  readonly #changing = new Map<number, Promise<void>>();
  readonly #stop = new AbortController();
  /** Aborts when the last shard has been released. Until then no other process may conclude that this one has died. */
  readonly #left = new AbortController();
  /** Members about which the broker is being asked. */
  readonly #asked = new Set<string>();
  readonly #firstHeartbeat = Promise.withResolvers<void>();
  #running: Promise<unknown> | undefined;
  #heartbeat = 0;
  #isRoundDue = false;
  /** Whether the current round had more changes than CHANGES_MAX. */
  #isCut = false;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#view = new LeaseView(options);
    this.#stop.signal.addEventListener('abort', () => this.#firstHeartbeat.resolve(), { once: true });
  }

  get held(): ReadonlySet<number> {
    return new Set(this.#held.keys());
  }

  /** Resolves when the bucket has been read once and all free shards have been taken. */
  async start(): Promise<void> {
    const { store, presence, now, onError, keys, instance } = this.#options;
    presence.enter(memberKey(keys, instance), this.#left.signal);
    await followBucket(store, this.#stop.signal, {
      begin: () => this.#view.clear(),
      change: change => {
        if (this.#view.apply(change, now())) this.#roundSoon();
        if (change.key === memberKey(keys, instance)) this.#firstHeartbeat.resolve();
      },
      ready: () => this.#view.ready(),
      // Until the bucket has been read again the view is empty, so this process keeps its shards and takes none.
      lost: onError,
    });
    await this.#putHeartbeat();
    const heartbeats = this.#repeat(() => this.#putHeartbeat());
    await this.#firstHeartbeat.promise;
    // A round begins at most CHANGES_MAX changes. After a full round the next one begins at once, so that a starting process need not wait
    // for heartbeats.
    for (let before = -CHANGES_MAX; this.#held.size - before >= CHANGES_MAX && !this.#stop.signal.aborted; ) {
      before = this.#held.size;
      this.#round();
      await this.#settled();
    }
    this.#running = Promise.all([heartbeats, this.#repeat(async () => this.#round())]);
  }

  /**
   * Releases all shards and then deletes the heartbeat, so that other processes need not wait until it is stale. They take each shard as
   * soon as it is released, because the last heartbeat shows that this process no longer takes part.
   */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    void this.#putHeartbeat({ leaving: true }).catch(this.#options.onError);
    await this.#settled();
    while (this.#held.size > 0) {
      for (const shard of this.#held.keys()) this.#change(shard, () => this.#release(shard));
      await this.#settled();
    }
    this.#left.abort();
    await this.#options.store.delete(memberKey(this.#options.keys, this.#options.instance));
  }

  /**
   * Stops a shard that failed in this process (a conflict, or the log was unavailable) and starts it again from its checkpoint if the lease
   * is still held. Retries until the log answers. The heartbeat resumes together with the connection, so if the shard stayed stopped here,
   * no other process would take it over.
   */
  async restart(shard: number): Promise<void> {
    const tenure = this.#held.get(shard);
    if (tenure === undefined) return;
    const { instance, startShard, stopShard } = this.#options;
    const progress = (await stopShard(shard)) ?? tenure.progress;
    const isCurrent = () => this.#held.get(shard) === tenure && !this.#stop.signal.aborted;
    const lease = await this.#leaseOf(shard, isCurrent);
    // The shard was released in the meantime, and may have been taken and started again since.
    if (!isCurrent()) return;
    if (lease?.owner === instance) startShard(shard, progress, 'restarted');
    else this.#held.delete(shard);
  }

  /**
   * Called after another process has worked on the shard. Reads the lease, because the view may lag behind, and stops the shard if the
   * lease is lost.
   */
  async confirm(shard: number): Promise<void> {
    const { store, keys, instance, stopShard } = this.#options;
    const entry = await store.get(shardKey(keys, shard));
    if (entry?.value.owner !== instance && this.#held.delete(shard)) await stopShard(shard);
  }

  /** Reads the lease from the log instead of the view. Undefined if there is none, or if `isWanted` has become false. */
  async #leaseOf(shard: number, isWanted: () => boolean): Promise<LeaseValue | undefined> {
    const { store, keys, heartbeatMs, onError } = this.#options;
    while (isWanted()) {
      try {
        return (await store.get(shardKey(keys, shard)))?.value;
      } catch (error) {
        onError(error);
        await this.#pause(heartbeatMs);
      }
    }
    return undefined;
  }

  /** Runs `action` every `heartbeatMs`, or back to back if it takes longer, until the process stops. */
  async #repeat(action: () => Promise<void>): Promise<void> {
    const { heartbeatMs, now, onError } = this.#options;
    for (let takenMs = 0; !this.#stop.signal.aborted; ) {
      await this.#pause(Math.max(0, heartbeatMs - takenMs));
      if (this.#stop.signal.aborted) return;
      const startedMs = now();
      await action().then(
        () => {
          takenMs = now() - startedMs;
        },
        error => {
          // Waits for a whole interval after an error, because a log that refuses immediately must not cause a tight loop.
          takenMs = 0;
          onError(error);
        },
      );
    }
  }

  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { signal } = this.#stop;
    const timer = setTimeout(resolve, ms);
    const onAbort = () => resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    await promise;
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }

  async #putHeartbeat(state?: { leaving: true }): Promise<void> {
    const { store, keys, instance } = this.#options;
    await store.put(memberKey(keys, instance), { owner: instance, heartbeat: ++this.#heartbeat, ...state });
  }

  /**
   * Asks the broker about processes whose heartbeat is late. The shards of a process that is gone are taken at once. A process that is only
   * slow, or cut off, keeps them until its heartbeat is stale.
   */
  #findGone(): void {
    const { presence, heartbeatMs, now, onError } = this.#options;
    for (const member of this.#view.silent(SUSPECT_HEARTBEATS * heartbeatMs, now())) {
      if (this.#asked.has(member.key)) continue;
      this.#asked.add(member.key);
      presence
        .isGone(member.key)
        .then(isGone => {
          if (!isGone) return;
          this.#view.markGone(member);
          this.#roundSoon();
        })
        .catch(onError)
        .finally(() => this.#asked.delete(member.key));
    }
  }

  /** Begins the changes that are due. Takes and releases come before renewals, which only save a later owner some reading. */
  #round(): void {
    const { instance, now, shards, stopShard } = this.#options;
    this.#isCut = false;
    if (this.#view.isCurrent(now())) {
      this.#findGone();
      const { take, release } = planShare(this.#view.leases(shards()), instance, this.held);
      for (const shard of release) this.#change(shard, () => this.#release(shard));
      for (const shard of take) this.#change(shard, () => this.#take(shard));
    }
    for (const [shard, tenure] of this.#held) {
      if (this.#changing.has(shard)) continue;
      const due = this.#dueFor(shard, tenure);
      if (due === 'stop')
        this.#change(shard, async () => {
          this.#held.delete(shard);
          await stopShard(shard);
        });
      else if (due !== undefined) this.#change(shard, () => this.#renew(shard, tenure, due));
    }
  }

  /** Begins a round before the next heartbeat. */
  #roundSoon(): void {
    if (this.#running === undefined || this.#isRoundDue || this.#stop.signal.aborted) return;
    this.#isRoundDue = true;
    void this.#pause(GATHER_MS).then(() => {
      this.#isRoundDue = false;
      if (!this.#stop.signal.aborted) this.#round();
    });
  }

  /** Begins a change of a shard, unless one is already in progress. */
  #change(shard: number, change: () => Promise<void>): void {
    if (this.#changing.has(shard)) return;
    if (this.#changing.size >= CHANGES_MAX) {
      this.#isCut = true;
      return;
    }
    const changing = change()
      .catch(this.#options.onError)
      .finally(() => {
        this.#changing.delete(shard);
        if (this.#isCut) this.#roundSoon();
      });
    this.#changing.set(shard, changing);
  }

  async #settled(): Promise<void> {
    await Promise.all(this.#changing.values());
  }

  async #take(shard: number): Promise<void> {
    const { store, keys, instance, now, startShard } = this.#options;
    const key = shardKey(keys, shard);
    const lease = this.#view.shard(shard);
    const progress = progressIn(lease?.value);
    const unproven = newestMarks(lease?.value.unproven);
    const value = { owner: instance, ...progress, ...unproven };
    const writtenAtMs = now();
    const write = lease === undefined ? store.create(key, value) : store.update(key, value, lease.revision);
    const revision = await unlessConflict(write);
    if (revision === undefined) return;
    this.#held.set(shard, { revision, progress: { ...progress, ...unproven }, writtenAtMs });
    // The process began to stop during the write. `stop` releases the lease, so the shard need not be started.
    if (this.#stop.signal.aborted) return;
    const before = lease?.value.owner;
    startShard(shard, { ...progress, ...unproven }, before === undefined ? 'fresh' : before === '' ? 'released' : 'lost');
  }

  /** Updates the tenure from the view. Returns `stop` if the lease is lost, and the progress to write if a renewal is due. */
  #dueFor(shard: number, tenure: Tenure): ShardProgress | 'stop' | undefined {
    const { instance, now, heartbeatMs, leaseMs, progressOf } = this.#options;
    const unwrittenMs = now() - tenure.writtenAtMs;
    const seen = this.#view.shard(shard);
    if (seen !== undefined && seen.revision > tenure.revision) {
      if (seen.value.owner !== instance) return 'stop';
      // Only this process writes its own name, so an earlier renewal was stored although its answer was lost.
      tenure.revision = seen.revision;
    }
    if (seen?.revision === tenure.revision) tenure.isSeen = true;
    else if (this.#view.isCurrent(now()) && (tenure.isSeen === true || unwrittenMs > UNSEEN_LEASES * leaseMs)) {
      // The lease or its whole bucket was deleted. Tries to take the shard again, which another process may have done since.
      if (seen?.value.owner !== instance) return 'stop';
      // The bucket has lost its newest entries (loss of power), and no other process has taken the shard since. Its progress is written
      // again, because from an older one a process would not notice that the log has lost what was stored since.
      Object.assign(tenure, { revision: seen.revision, progress: progressIn(seen.value), isSeen: true });
    }
    if (unwrittenMs < Math.max(RENEWAL_HEARTBEATS * heartbeatMs, (1_000 * this.#held.size) / RENEWALS_PER_SECOND_MAX))
      return undefined;
    const progress = progressIn(progressOf(shard) ?? tenure.progress);
    return unwrittenMs < LEASE_RENEWAL_MS && isSame(progress, tenure.progress) ? undefined : progress;
  }

  async #renew(shard: number, tenure: Tenure, progress: ShardProgress): Promise<void> {
    const { store, keys, instance, now, stopShard } = this.#options;
    const writtenAtMs = now();
    const value = { owner: instance, ...progress };
    const revision = await unlessConflict(store.update(shardKey(keys, shard), value, tenure.revision));
    if (revision !== undefined) Object.assign(tenure, { revision, progress, writtenAtMs, isSeen: false });
    // After a conflict the view shows which process wrote. If the lease was deleted instead, it is taken again.
    else if (this.#view.isCurrent(now()) && this.#view.shard(shard) === undefined && this.#held.delete(shard))
      await stopShard(shard);
  }

  async #release(shard: number): Promise<void> {
    const { store, keys, instance, stopShard } = this.#options;
    const tenure = this.#held.get(shard);
    const lease = this.#view.shard(shard);
    const seen = lease?.value.owner === instance ? lease : undefined;
    const revision = Math.max(tenure?.revision ?? 0, seen?.revision ?? 0);
    this.#held.delete(shard);
    const stopped = tenure && ((await stopShard(shard)) ?? tenure.progress);
    const progress = progressIn(stopped ?? seen?.value);
    const value = { owner: '', ...progress, ...newestMarks(stopped?.unproven) };
    await unlessConflict(store.update(shardKey(keys, shard), value, revision));
  }
}

/** The marks that a released lease names. */
function newestMarks(marks: readonly RecordMark[] = []): Pick<ShardProgress, 'unproven'> {
  const unproven = marks.toSorted((a, b) => b.seq - a.seq).slice(0, UNPROVEN_MAX);
  return unproven.length === 0 ? {} : { unproven };
}

/** The part of the progress that every lease names. */
function progressIn(lease: Partial<ShardProgress> | undefined): ShardProgress {
  const { checkpoint = 0, newest, refoldTo, leadership, isInDoubt, leapTo, listed, listedIn } = lease ?? {};
  return {
    checkpoint,
    ...(newest && { newest }),
    ...(refoldTo !== undefined && { refoldTo }),
    ...(leadership !== undefined && { leadership }),
    ...(isInDoubt === true && { isInDoubt }),
    ...(leapTo !== undefined && { leapTo }),
    ...(listed === true && { listed }),
    ...(listedIn !== undefined && { listedIn }),
  };
}

function isSame(a: ShardProgress, b: ShardProgress): boolean {
  const isSameRecord = a.checkpoint === b.checkpoint && a.newest?.id === b.newest?.id;
  const isSameDoubt = a.leadership === b.leadership && a.isInDoubt === b.isInDoubt && a.leapTo === b.leapTo;
  const isSameList = a.listed === b.listed && a.listedIn === b.listedIn;
  return isSameRecord && isSameDoubt && a.refoldTo === b.refoldTo && isSameList;
}

async function unlessConflict(write: Promise<number>): Promise<number | undefined> {
  try {
    return await write;
  } catch (error) {
    if (error instanceof LogConflict) return undefined;
    throw error;
  }
}
