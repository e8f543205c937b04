import { setTimeout as sleep } from 'node:timers/promises';
import { isTerminal } from '@hopline/a2a';
import { isSameOwner, type Owner } from '@hopline/events';
import { followBucket, type Log, type LogExtent, type TaskIndexEntry } from '@hopline/log';
import { partyOf } from './owner-counts.ts';

/** Interval at which the extent of the log is read, which retention shrinks. */
const EXTENT_MS = 5_000;
/** Groups of ended tasks of one tenant: retention removes a group when the newest of its records leaves. */
export const TENANT_GROUPS_MAX = 64;

/** Bytes of the ended tasks whose records end at or before `seq`. */
type Group = { seq: number; bytes: number };
type OpenTask = { tenant: string; bytes: number; seq: number };

/**
 * Bytes that the records of each tenant take in the log, from the index entries of its tasks. A task counts as a whole until its newest
 * record has left. Memory is bounded: TENANT_GROUPS_MAX numbers for the ended tasks of a tenant, and as many open tasks as the index holds.
 */
export class BytesByTenant {
  readonly #open = new Map<string, OpenTask>();
  readonly #ended = new Map<string, Group[]>();
  /** Bytes of open and ended tasks together. */
  readonly #bytes = new Map<string, number>();

  /** Takes the newest entry of a task. An ended task has no later one. */
  set(taskId: string, { owner, state, seq = 0, storedBytes = 0 }: TaskIndexEntry): void {
    this.#close(taskId);
    const tenant = owner && partyOf(owner);
    if (tenant === undefined || storedBytes === 0) return;
    this.#add(tenant, storedBytes);
    if (isTerminal(state)) this.#group(tenant, { seq, bytes: storedBytes });
    else this.#open.set(taskId, { tenant, bytes: storedBytes, seq });
  }

  of(owner: Owner): number {
    return this.#bytes.get(partyOf(owner) ?? '') ?? 0;
  }

  /** Forgets tasks whose newest record is below `firstSeq`. */
  removeBelow(firstSeq: number): void {
    for (const [taskId, { seq }] of this.#open) if (seq < firstSeq) this.#close(taskId);
    for (const [tenant, groups] of this.#ended) {
      const kept = groups.filter(({ seq }) => seq >= firstSeq);
      for (const group of groups) if (group.seq < firstSeq) this.#add(tenant, -group.bytes);
      if (kept.length === 0) this.#ended.delete(tenant);
      else this.#ended.set(tenant, kept);
    }
  }

  #close(taskId: string): void {
    const open = this.#open.get(taskId);
    if (open === undefined) return;
    this.#open.delete(taskId);
    this.#add(open.tenant, -open.bytes);
  }

  #group(tenant: string, group: Group): void {
    const groups = this.#ended.get(tenant) ?? [];
    this.#ended.set(tenant, groups);
    groups.push(group);
    if (groups.length <= TENANT_GROUPS_MAX) return;
    // Merges the two neighbors with the fewest bytes, so that all groups stay about equally large.
    const pairOf = (at: number) => groups[at]!.bytes + groups[at + 1]!.bytes;
    let smallest = 0;
    for (let at = 1; at + 1 < groups.length; at += 1) if (pairOf(at) < pairOf(smallest)) smallest = at;
    const [one, other] = groups.slice(smallest, smallest + 2) as [Group, Group];
    groups.splice(smallest, 2, { seq: Math.max(one.seq, other.seq), bytes: one.bytes + other.bytes });
  }

  #add(tenant: string, bytes: number): void {
    const sum = (this.#bytes.get(tenant) ?? 0) + bytes;
    if (sum > 0) this.#bytes.set(tenant, sum);
    else this.#bytes.delete(tenant);
  }
}

type StoredBytesOptions = {
  log: Pick<Log, 'tasks' | 'facts' | 'layouts'>;
  /** Share of the log's bytes that one tenant may store, 0 to 1. */
  shareMax: number;
  onLost(error: unknown): void;
};

/** The bytes of each tenant in each stream group, because every group has its own sequences. */
class BytesByGroup {
  readonly #log: StoredBytesOptions['log'];
  readonly #groups = new Map<number, BytesByTenant>();

  constructor(log: StoredBytesOptions['log']) {
    this.#log = log;
  }

  set(taskId: string, entry: TaskIndexEntry): void {
    const { layouts } = this.#log;
    const group = layouts.groupOf(layouts.shardOf(taskId));
    let counted = this.#groups.get(group);
    if (counted === undefined) {
      counted = new BytesByTenant();
      this.#groups.set(group, counted);
    }
    counted.set(taskId, entry);
  }

  of(owner: Owner): number {
    return [...this.#groups.values()].reduce((sum, group) => sum + group.of(owner), 0);
  }

  /** Forgets tasks whose newest record is gone. */
  removeGone(extent: LogExtent): void {
    for (const [group, counted] of this.#groups)
      counted.removeBelow(extent.ofShard(this.#log.layouts.shardsOf(group)[0]!).firstSeq);
  }
}

/** Follows the index and the extent of the log until closed, and finds the tenants that have used up their share. */
export class StoredBytes {
  readonly #options: StoredBytesOptions;
  readonly #closing = new AbortController();
  #counted: BytesByGroup;
  /** Extent of the log when it was last read. */
  #extent: LogExtent | undefined;
  #bytesMax = Number.POSITIVE_INFINITY;

  constructor(options: StoredBytesOptions) {
    this.#options = options;
    this.#counted = new BytesByGroup(options.log);
    this.#follow();
    void this.#watchExtent();
  }

  /** Whether the tenant of the caller has used up its share of the log. False until the index has been read. */
  isFull(caller: Owner): boolean {
    const { shareMax } = this.#options;
    return !isSameOwner(caller, undefined) && this.#counted.of(caller) >= shareMax * this.#bytesMax;
  }

  close(): void {
    this.#closing.abort();
  }

  #follow(): void {
    // A new count is kept apart until the bucket has been read again, so that a lost watch does not make every tenant look empty.
    let counting = this.#counted;
    const following = followBucket(this.#options.log.tasks, this.#closing.signal, {
      begin: () => {
        counting = new BytesByGroup(this.#options.log);
      },
      change: ({ key, value }) => {
        if (value !== undefined) counting.set(key, value);
      },
      ready: () => {
        // The index keeps the entries of tasks for longer than a log whose bytes are bounded keeps their records.
        if (this.#extent !== undefined) counting.removeGone(this.#extent);
        this.#counted = counting;
      },
      lost: error => this.#options.onLost(error),
    });
    // followBucket reports a failed first read through `lost`, and continues.
    following.catch(() => {});
  }

  async #watchExtent(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      // Every other read reports a log that is away.
      const extent = await this.#options.log.facts.extent().catch(() => undefined);
      if (extent !== undefined) {
        this.#bytesMax = extent.bytesMax ?? Number.POSITIVE_INFINITY;
        this.#extent = extent;
        this.#counted.removeGone(extent);
      }
      await sleep(EXTENT_MS, undefined, { signal, ref: false }).catch(() => {});
    }
  }
}
