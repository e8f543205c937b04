import { setTimeout as sleep } from 'node:timers/promises';
import { isSameOwner, type Owner } from '@hopline/events';
import { followBucket, type KeyValue } from '@hopline/log';

/** Keys of the parties whose limits apply to a caller: itself, and its tenant where it has one. */
type PartyKeys = { owner: string; tenant: string | undefined };

export function partyKeysOf({ tenant, subject }: Owner): PartyKeys {
  return { owner: JSON.stringify([tenant ?? null, subject ?? null]), tenant };
}

/** The tenant of a caller, or the caller if it has no tenant. Undefined without authentication: all requests then come from one caller. */
export function partyOf(caller: Owner): string | undefined {
  if (isSameOwner(caller, undefined)) return undefined;
  return caller.tenant ?? `:${partyKeysOf(caller).owner}`;
}

type OwnerCountsOptions<V> = {
  bucket: KeyValue<V>;
  /** The owner for whom an entry counts; undefined when it does not count. */
  ownerOf(value: V): Owner | undefined;
  /** Bytes of an entry in the bucket. */
  bytesOf(key: string, value: V): number;
  onLost(error: unknown): void;
  /** Monotonic milliseconds. */
  now?: () => number;
};

/** Entries of a party, and their bytes. */
export type Usage = { entries: number; bytes: number };

type Counted = PartyKeys & { reading: number; bytes: number };

const NOTHING: Usage = { entries: 0, bytes: 0 };

/** Time between two readings of the whole bucket, which find what retention has removed. */
const REREAD_MS_MIN = 60_000;

/** Counts entries of a bucket and their bytes by owner and tenant: those that this process adds, and once it follows the bucket, those of all processes. */
export class OwnerCounts<V> {
  readonly #options: OwnerCountsOptions<V>;
  readonly #entries = new Map<string, Counted>();
  readonly #owners = new Map<string, Usage>();
  readonly #tenants = new Map<string, Usage>();
  #total = NOTHING;
  #following: { stop: AbortController; startedMs: number; complete: Promise<unknown> } | undefined;
  /** Counts the readings of the whole bucket, so that entries of older readings can be recognized. */
  #reading = 0;
  #closed = false;
  readonly #now: () => number;

  constructor(options: OwnerCountsOptions<V>) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** All entries counted. */
  get total(): Usage {
    return this.#total;
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

  /** Bytes of a counted entry. */
  bytesOf(key: string): number {
    return this.#entries.get(key)?.bytes ?? 0;
  }

  counts(keys: PartyKeys): { owner: Usage; tenant: Usage } {
    const tenant = keys.tenant === undefined ? NOTHING : (this.#tenants.get(keys.tenant) ?? NOTHING);
    return { owner: this.#owners.get(keys.owner) ?? NOTHING, tenant };
  }

  /** Counts an entry that this process is about to write. */
  add(key: string, keys: PartyKeys, bytes: number): void {
    this.#remove(key);
    this.#entries.set(key, { ...keys, reading: this.#reading, bytes });
    this.#change(keys, { entries: 1, bytes });
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
        else this.add(key, partyKeysOf(owner), this.#options.bytesOf(key, value as V));
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
    this.#change(entry, { entries: -1, bytes: -entry.bytes });
  }

  #change({ owner, tenant }: PartyKeys, more: Usage): void {
    this.#total = sumOf(this.#total, more);
    change(this.#owners, owner, more);
    if (tenant !== undefined) change(this.#tenants, tenant, more);
  }
}

const sumOf = (one: Usage, other: Usage): Usage => ({
  entries: one.entries + other.entries,
  bytes: one.bytes + other.bytes,
});

function change(usages: Map<string, Usage>, key: string, more: Usage): void {
  const usage = sumOf(usages.get(key) ?? NOTHING, more);
  if (usage.entries > 0) usages.set(key, usage);
  else usages.delete(key);
}
