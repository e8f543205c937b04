import type { Change, LeaseValue } from '@hopline/log';
import type { Leases } from './fair-share.ts';

const RELAY = 'relay.';
const SHARD = 'shard.';

export const relayKey = (instance: string): string => `${RELAY}${instance}`;
export const shardKey = (shard: number): string => `${SHARD}${shard}`;

type Seen = { value: LeaseValue; revision: number; changedAtMs: number };

/**
 * The lease bucket as this relay sees it. A relay lives while its heartbeat keeps changing, judged by the observer's own monotonic clock:
 * clocks of two machines are never compared, and nothing depends on the server's expiry timer.
 */
export class LeaseView {
  readonly #entries = new Map<string, Seen>();
  readonly #leaseMs: number;

  /** A relay whose heartbeat stood still for `leaseMs` is taken for dead. */
  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs;
  }

  /** The bucket comes anew. */
  clear(): void {
    this.#entries.clear();
  }

  apply(change: Extract<Change<LeaseValue>, { type: 'entry' }>, nowMs: number): void {
    if (change.value === undefined) this.#entries.delete(change.key);
    else this.#entries.set(change.key, { value: change.value, revision: change.revision, changedAtMs: nowMs });
  }

  /** Everybody's silence up to `nowMs` is forgiven: this process was asleep and has seen nothing. */
  forgive(nowMs: number): void {
    for (const entry of this.#entries.values()) entry.changedAtMs = nowMs;
  }

  shard(shard: number): { value: LeaseValue; revision: number } | undefined {
    return this.#entries.get(shardKey(shard));
  }

  leases(shards: number, nowMs: number): Leases {
    const live = new Set<string>();
    for (const [key, { value, changedAtMs }] of this.#entries) {
      if (key.startsWith(RELAY) && nowMs - changedAtMs <= this.#leaseMs) live.add(value.owner);
    }
    const owners = new Map<number, string>();
    for (let shard = 0; shard < shards; shard++) {
      const owner = this.shard(shard)?.value.owner;
      if (owner !== undefined && owner !== '') owners.set(shard, owner);
    }
    return { shards, live, owners };
  }
}
