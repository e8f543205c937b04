import { setTimeout as sleep } from 'node:timers/promises';
import { A2AError } from '@hopline/a2a';
import type { Owner, Role } from '@hopline/events';
import { followBucket, type KeyValue, type TaskIndexEntry } from '@hopline/log';
import { fromLog } from './log-faults.ts';

/** Position of a task in the list: by the time of its status, then by id, so that the order is total. */
export type IndexPosition = { taskId: string; at: number };

export type IndexedTask = IndexPosition &
  Pick<TaskIndexEntry, 'contextId' | 'state' | 'generation' | 'listed'> & { owner: Owner | undefined };

/** Negative when `a` is older than `b`. */
export function comparePositions(a: IndexPosition, b: IndexPosition): number {
  if (a.at !== b.at) return a.at - b.at;
  return a.taskId < b.taskId ? -1 : Number(a.taskId > b.taskId);
}

const ENTRIES_MAX_DEFAULT = 100_000;

type TaskIndexOptions = {
  tasks: KeyValue<TaskIndexEntry>;
  role: Role;
  /** Maximum number of tasks in memory, about 300 bytes each; default 100,000. The task with the oldest status is dropped first. */
  entriesMax?: number;
  /** How long a read waits until the current content of the bucket has been read. */
  readyMsMax: number;
  onLost(error: unknown): void;
};

/**
 * The tasks of one role, ordered by the time of their status, from the log's task index. A list finds its page here and reads only that
 * page from the log. Needed only while relays of an earlier version run (`TaskLists`). The bucket is followed from the first list request
 * on, because most processes serve none. Only the newest `entriesMax` tasks are listed.
 */
export class TaskIndex {
  readonly #options: TaskIndexOptions;
  readonly #closing = new AbortController();
  readonly #complete = Promise.withResolvers<void>();
  readonly #known = new Map<string, IndexedTask>();
  /** Oldest first, because nearly every change is the newest one and is added at the end. */
  #ordered: IndexedTask[] = [];
  #following = false;
  /** Every write of the bucket up to this revision has been read. */
  #followed = 0;
  readonly #waiters = new Set<{ revision: number; resolve: () => void }>();

  constructor(options: TaskIndexOptions) {
    this.#options = options;
  }

  /**
   * Resolves when everything that the bucket held at the time of the call has been read, including writes of other processes. Throws
   * UNAVAILABLE after `readyMsMax`; reading continues, so a later call may succeed.
   */
  async ready(): Promise<void> {
    const over = new AbortController();
    const timeout = sleep(this.#options.readyMsMax, 'late' as const, { signal: over.signal, ref: false }).catch(
      () => 'late' as const,
    );
    try {
      const end = await Promise.race([this.#catchUp(over.signal), timeout]);
      if (end === 'late') throw new A2AError('UNAVAILABLE', { detail: 'the task index is still loading; retry' });
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

  /** Adds a state of a task that this process has seen, which may be newer than the bucket. */
  note(taskId: string, entry: Omit<TaskIndexEntry, 'startSeq'>): void {
    const { role, generation, at, contextId, state, owner } = entry;
    const known = this.#known.get(taskId);
    if (role !== this.#options.role || (known !== undefined && known.generation >= generation)) return;
    this.forget(taskId);
    const task = { taskId, at, contextId, state, generation, owner };
    this.#known.set(taskId, task);
    this.#ordered.splice(this.#indexOf(task), 0, task);
    if (this.#ordered.length > (this.#options.entriesMax ?? ENTRIES_MAX_DEFAULT))
      this.#known.delete(this.#ordered.shift()!.taskId);
  }

  /**
   * Removes a task that the log no longer holds, unless a generation later than `generation` has arrived since the log was
   * read.
   */
  forget(taskId: string, generation = Number.POSITIVE_INFINITY): void {
    const known = this.#known.get(taskId);
    if (known === undefined || known.generation > generation) return;
    this.#known.delete(taskId);
    this.#ordered.splice(this.#indexOf(known), 1);
  }

  /** Matching tasks, newest status first. */
  newestFirst(matches: (task: IndexedTask) => boolean): IndexedTask[] {
    const found: IndexedTask[] = [];
    for (let n = this.#ordered.length - 1; n >= 0; n -= 1) if (matches(this.#ordered[n]!)) found.push(this.#ordered[n]!);
    return found;
  }

  close(): void {
    this.#closing.abort();
  }

  /** `revision`: the bucket's revision before the call. The first read covers all writes up to it. */
  #follow(revision: number): void {
    this.#following = true;
    const following = followBucket(this.#options.tasks, this.#closing.signal, {
      // A new read of the bucket removes nothing: entries are never deleted, and tasks removed by retention are noticed when
      // they are read.
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
      lost: error => this.#options.onLost(error),
    });
    // After the watch is lost, following resumes by itself; reads that wait for it time out.
    following.catch(() => {});
  }

  /** Index of the first task that is not older than `position`. */
  #indexOf(position: IndexPosition): number {
    let [low, high] = [0, this.#ordered.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (comparePositions(this.#ordered[middle]!, position) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
