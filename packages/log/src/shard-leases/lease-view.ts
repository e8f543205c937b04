import type { Change } from '../key-value.ts';
import type { LeaseValue } from '../log.ts';
import type { Leases } from './fair-share.ts';

/**
 * Key prefixes of one service: `<member>.<instance>` is a heartbeat, `<shard>.<number>` names the owner of a shard. No two
 * services share a prefix.
 */
export type LeaseKeys = { readonly member: string; readonly shard: string };

export const memberKey = (keys: LeaseKeys, instance: string): string => `${keys.member}.${instance}`;
export const shardKey = (keys: LeaseKeys, shard: number): string => `${keys.shard}.${shard}`;

/** `revision`: revision of its newest heartbeat. */
type SilentMember = { key: string; revision: number };
/** Members without a heartbeat for this long are forgotten: each start of a process adds one, which the bucket keeps longer. */
export const MEMBER_FORGOTTEN_MS = 60 * 60_000;

type SeenEntry = { value: LeaseValue; revision: number; changedAtMs: number };

/**
 * The lease bucket as this process sees it. Another process is live while its heartbeat keeps changing, measured with the observer's monotonic clock:
 * clocks of two machines are never compared, and nothing depends on the server's expiry timer.
 *
 * The view is current while this process sees its own heartbeat in it. The silence of another process is measured from its newest heartbeat
 * to the newest heartbeat of this process, because both take the same path: if this process does not see its own heartbeats, their absence
 * proves nothing about others. After an interruption (the process was suspended or cut off, or writes are slow), silence is measured only
 * from its end.
 */
export class LeaseView {
  readonly #entries = new Map<string, SeenEntry>();
  readonly #keys: LeaseKeys;
  readonly #leaseMs: number;
  readonly #ownKey: string;
  #isRead = false;
  #ownSeenAtMs = Number.NEGATIVE_INFINITY;

  /** A process whose heartbeat has not changed for `leaseMs` counts as dead. */
  constructor({ keys, leaseMs, instance }: { keys: LeaseKeys; leaseMs: number; instance: string }) {
    this.#keys = keys;
    this.#leaseMs = leaseMs;
    this.#ownKey = memberKey(keys, instance);
  }

  /** Call it before the bucket is read again from the beginning. */
  clear(): void {
    this.#entries.clear();
    this.#isRead = false;
  }

  /** Call it when the bucket has been read. */
  ready(): void {
    this.#isRead = true;
  }

  /** Whether the view shows which processes are live. */
  isCurrent(nowMs: number): boolean {
    return this.#isRead && nowMs - this.#ownSeenAtMs <= this.#leaseMs;
  }

  /** Whether there may be shards to take now, because one was released or a process has left or is leaving. */
  apply(change: Extract<Change<LeaseValue>, { type: 'entry' }>, nowMs: number): boolean {
    const { member, shard } = this.#keys;
    const { key, value, revision } = change;
    if (!key.startsWith(`${member}.`) && !key.startsWith(`${shard}.`)) return false;
    if (value === undefined) this.#entries.delete(key);
    else this.#entries.set(key, { value, revision, changedAtMs: nowMs });
    if (key === this.#ownKey) {
      if (!this.isCurrent(nowMs)) for (const entry of this.#entries.values()) entry.changedAtMs = nowMs;
      this.#ownSeenAtMs = nowMs;
      return false;
    }
    return value === undefined || value.owner === '' || value.leaving === true;
  }

  /** Number of entries in memory. */
  get size(): number {
    return this.#entries.size;
  }

  shard(shard: number): { value: LeaseValue; revision: number } | undefined {
    return this.#entries.get(shardKey(this.#keys, shard));
  }

  /** Members that have had no heartbeat for `ms` but still count as live. */
  silent(ms: number, nowMs: number): SilentMember[] {
    const members = memberKey(this.#keys, '');
    const silent: SilentMember[] = [];
    for (const [key, { revision, changedAtMs }] of this.#entries) {
      const isMember = key.startsWith(members) && key !== this.#ownKey;
      if (isMember && nowMs - changedAtMs > ms && this.#silentMs(changedAtMs) <= this.#leaseMs) silent.push({ key, revision });
    }
    return silent;
  }

  /** Marks a member as dead, unless it has sent another heartbeat in the meantime. */
  markGone({ key, revision }: SilentMember): void {
    const entry = this.#entries.get(key);
    if (entry?.revision === revision) entry.changedAtMs = Number.NEGATIVE_INFINITY;
  }

  leases(shards: number): Leases {
    const live = new Set<string>();
    let leaving = 0;
    const members = memberKey(this.#keys, '');
    for (const [key, { value, changedAtMs }] of this.#entries) {
      if (!key.startsWith(members)) continue;
      const silentMs = this.#silentMs(changedAtMs);
      if (silentMs <= this.#leaseMs) {
        live.add(value.owner);
        if (value.leaving === true) leaving += 1;
      } else if (silentMs > MEMBER_FORGOTTEN_MS) this.#entries.delete(key);
    }
    const owners = new Map<number, string>();
    for (let shard = 0; shard < shards; shard++) {
      const owner = this.shard(shard)?.value.owner;
      if (owner !== undefined && owner !== '') owners.set(shard, owner);
    }
    return { shards, live, leaving, owners };
  }

  /** How long a member had been silent when this process last saw its own heartbeat. Any longer silence is not proven. */
  #silentMs(changedAtMs: number): number {
    return this.#ownSeenAtMs - changedAtMs;
  }
}
