import { setTimeout as sleep } from 'node:timers/promises';
import { A2AError } from '@hopline/a2a';
import type { Owner, Role } from '@hopline/events';
import { followBucket, type KeyValue, type TaskIndexEntry } from '@hopline/log';
import { fromLog } from './log-faults.ts';

/** Where a task stands among all: newest status first, tasks of one millisecond by id, so that the order is total. */
export type IndexPosition = { taskId: string; at: number };

export type IndexedTask = IndexPosition & Pick<TaskIndexEntry, 'contextId' | 'state' | 'generation'> & { owner: Owner | undefined };

/** Negative when `a` is older than `b`. */
export function comparePositions(a: IndexPosition, b: IndexPosition): number {
  if (a.at !== b.at) return a.at - b.at;
  return a.taskId < b.taskId ? -1 : Number(a.taskId > b.taskId);
}

export type TaskIndexOptions = {
  tasks: KeyValue<TaskIndexEntry>;
  role: Role;
  /** Tasks held; the one with the oldest status goes first. One takes about 300 bytes. */
  entriesMax: number;
  /** How long a reader waits for what the bucket already has; milliseconds. */
  readyMsMax: number;
  lost(error: unknown): void;
};

/**
 * The tasks of one role by the time of their status, from the log's task index: what a list needs of every task, so that only a page of them is read from the log.
 * The bucket is followed from the first list on, because most processes are never asked for one. Bounded: older tasks than the newest `entriesMax` are not listed.
 */
export class TaskIndex {
  readonly #options: TaskIndexOptions;
  readonly #closing = new AbortController();
  readonly #complete = Promise.withResolvers<void>();
  readonly #known = new Map<string, IndexedTask>();
  /** Oldest first: nearly every change is the newest, and goes to the end. */
  #ordered: IndexedTask[] = [];
  #following = false;
  /** Every write of the bucket up to this revision is known. */
  #followed = 0;
  readonly #waiters = new Set<{ revision: number; resolve: () => void }>();

  constructor(options: TaskIndexOptions) {
    this.#options = options;
  }

  /**
   * Resolves when everything is known that the bucket had at the call, whoever wrote it. Throws UNAVAILABLE after `readyMsMax`; the reading goes on, and a later call may find it done.
   */
  async ready(): Promise<void> {
    const over = new AbortController();
    const timeout = sleep(this.#options.readyMsMax, 'late' as const, { signal: over.signal, ref: false }).catch(
      () => 'late' as const,
    );
    try {
      const end = await Promise.race([this.#catchUp(over.signal), timeout]);
      if (end === 'late') throw new A2AError('UNAVAILABLE', { detail: 'the tasks are still being read' });
    } finally {
      over.abort();
    }
  }

  async #catchUp(over: AbortSignal): Promise<void> {
    const revision = await this.#options.tasks.revision().catch(thrown => {
      throw fromLog(thrown, undefined);
    });
    if (!this.#following) this.#follow(revision);
    await this.#complete.promise;
    if (this.#followed >= revision) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { revision, resolve };
    this.#waiters.add(waiter);
    over.addEventListener('abort', () => {
      this.#waiters.delete(waiter);
      resolve();
    });
    await promise;
  }

  #passed(revision: number): void {
    this.#followed = Math.max(this.#followed, revision);
    for (const waiter of this.#waiters) if (waiter.revision <= this.#followed) waiter.resolve();
  }

  /** What this process has seen of a task: it knows its own earlier than the bucket tells. */
  note(taskId: string, entry: Omit<TaskIndexEntry, 'startSeq'>): void {
    const { role, generation, at, contextId, state, owner } = entry;
    const known = this.#known.get(taskId);
    if (role !== this.#options.role || (known !== undefined && known.generation >= generation)) return;
    this.forget(taskId);
    const task = { taskId, at, contextId, state, generation, owner };
    this.#known.set(taskId, task);
    this.#ordered.splice(this.#placeOf(task), 0, task);
    if (this.#ordered.length > this.#options.entriesMax) this.#known.delete(this.#ordered.shift()!.taskId);
  }

  /** The log has the task no more. `generation`: unless a later one has come since the log was asked. */
  forget(taskId: string, generation = Number.POSITIVE_INFINITY): void {
    const known = this.#known.get(taskId);
    if (known === undefined || known.generation > generation) return;
    this.#known.delete(taskId);
    this.#ordered.splice(this.#placeOf(known), 1);
  }

  /** Newest status first, as it is now. */
  newestFirst(matches: (task: IndexedTask) => boolean): IndexedTask[] {
    const found: IndexedTask[] = [];
    for (let n = this.#ordered.length - 1; n >= 0; n -= 1) if (matches(this.#ordered[n]!)) found.push(this.#ordered[n]!);
    return found;
  }

  close(): void {
    this.#closing.abort();
  }

  /** `revision`: one that the bucket had before, so the first reading has it. */
  #follow(revision: number): void {
    this.#following = true;
    const following = followBucket(this.#options.tasks, this.#closing.signal, {
      // Nothing is forgotten when the bucket is read anew: nobody deletes from it, and what retention takes is noticed when it is read.
      begin: () => {},
      change: ({ key, value, revision }) => {
        if (value === undefined) this.forget(key);
        else this.note(key, value);
        this.#passed(revision);
      },
      ready: () => {
        this.#passed(revision);
        this.#complete.resolve();
      },
      lost: error => this.#options.lost(error),
    });
    // It goes on by itself after a loss; whoever waits is told by the time limit.
    following.catch(() => {});
  }

  /** Index of the first task that is not older than `place`. */
  #placeOf(place: IndexPosition): number {
    let [low, high] = [0, this.#ordered.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (comparePositions(this.#ordered[middle]!, place) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
