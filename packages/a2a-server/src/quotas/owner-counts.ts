import { setTimeout as sleep } from 'node:timers/promises';
import type { Owner } from '@hopline/events';
import { followBucket, type KeyValue } from '@hopline/log';

/** Keys of the parties whose limits apply to a caller: itself, and its tenant where it has one. */
export type PartyKeys = { owner: string; tenant: string | undefined };

export function partyKeysOf({ tenant, subject }: Owner): PartyKeys {
  return { owner: JSON.stringify([tenant ?? null, subject ?? null]), tenant };
}

export type OwnerCountsOptions<V> = {
  bucket: KeyValue<V>;
  /** The owner for whom an entry counts; undefined when it does not count. */
  ownerOf(value: V): Owner | undefined;
  onLost(error: unknown): void;
  /** Monotonic milliseconds. */
  now?: () => number;
};

type Counted = PartyKeys & { reading: number };

/** Time between two readings of the whole bucket, which find what retention has removed. */
const REREAD_MS_MIN = 60_000;

/** Counts entries of a bucket by owner and tenant: those that this process adds, and once it follows the bucket, those of all processes. */
export class OwnerCounts<V> {
  readonly #options: OwnerCountsOptions<V>;
  readonly #entries = new Map<string, Counted>();
  readonly #owners = new Map<string, number>();
  readonly #tenants = new Map<string, number>();
  #following: { stop: AbortController; startedMs: number; complete: Promise<unknown> } | undefined;
  /** Counts the readings of the whole bucket, so that entries of older readings can be recognized. */
  #reading = 0;
  #closed = false;
  readonly #now: () => number;

  constructor(options: OwnerCountsOptions<V>) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Entries counted. */
  get size(): number {
    return this.#entries.size;
  }

  /** Follows the bucket from now on. Resolves when it has been read once, or after `msMax`. */
  async follow(msMax: number): Promise<void> {
    this.#follow();
    const over = new AbortController();
    const late = sleep(msMax, undefined, { signal: over.signal, ref: false }).catch(() => {});
    await Promise.race([this.#following?.complete, late]);
    over.abort();
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  counts(keys: PartyKeys): { owner: number; tenant: number } {
    const tenant = keys.tenant === undefined ? 0 : (this.#tenants.get(keys.tenant) ?? 0);
    return { owner: this.#owners.get(keys.owner) ?? 0, tenant };
  }

  /** Counts an entry that this process is about to write. */
  add(key: string, keys: PartyKeys): void {
    this.#remove(key);
    this.#entries.set(key, { ...keys, reading: this.#reading });
    this.#owners.set(keys.owner, (this.#owners.get(keys.owner) ?? 0) + 1);
    if (keys.tenant !== undefined) this.#tenants.set(keys.tenant, (this.#tenants.get(keys.tenant) ?? 0) + 1);
  }

  /** Reads the whole bucket again, unless it was read a short time ago: retention removes entries without an event. */
  reread(): void {
    if (this.#following === undefined || this.#now() - this.#following.startedMs < REREAD_MS_MIN) return;
    this.#following.stop.abort();
    this.#following = undefined;
    this.#follow();
  }

  close(): void {
    this.#closed = true;
    this.#following?.stop.abort();
  }

  #follow(): void {
    if (this.#following !== undefined || this.#closed) return;
    const stop = new AbortController();
    const following = followBucket(this.#options.bucket, stop.signal, {
      begin: () => {
        this.#reading += 1;
      },
      change: ({ key, value }) => {
        const owner = value === undefined ? undefined : this.#options.ownerOf(value);
        if (owner === undefined) this.#remove(key);
        else this.add(key, partyKeysOf(owner));
      },
      ready: () => {
        for (const [key, { reading }] of this.#entries) if (reading < this.#reading) this.#remove(key);
      },
      lost: error => this.#options.onLost(error),
    });
    // After a loss, following resumes by itself.
    this.#following = { stop, startedMs: this.#now(), complete: following.catch(() => {}) };
  }

  #remove(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    decrement(this.#owners, entry.owner);
    if (entry.tenant !== undefined) decrement(this.#tenants, entry.tenant);
  }
}

function decrement(counts: Map<string, number>, key: string): void {
  const left = (counts.get(key) ?? 0) - 1;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}
