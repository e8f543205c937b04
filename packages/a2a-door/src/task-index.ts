import { setTimeout as sleep } from 'node:timers/promises';
import { A2AError } from '@hopline/a2a';
import type { Owner, Role } from '@hopline/events';
import { followBucket, type KeyValue, type TaskIndexEntry } from '@hopline/log';

/** Where a task stands among all: newest status first, tasks of one millisecond by id, so that the order is total. */
export type Place = { taskId: string; at: number };

export type IndexedTask = Place & Pick<TaskIndexEntry, 'contextId' | 'state' | 'generation'> & { owner: Owner | undefined };

/** Negative when `a` is older than `b`. */
export function comparePlaces(a: Place, b: Place): number {
  if (a.at !== b.at) return a.at - b.at;
  return a.taskId < b.taskId ? -1 : Number(a.taskId > b.taskId);
}

export type TaskIndexOptions = {
  tasks: KeyValue<TaskIndexEntry>;
  role: Role;
  /** Tasks held; the one with the oldest status goes first. One takes about 300 bytes. */
  entriesMax: number;
  /** How long a reader waits for the first reading of the bucket; milliseconds. */
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

  constructor(options: TaskIndexOptions) {
    this.#options = options;
  }

  /** Resolves when every task in the bucket is known. Throws UNAVAILABLE after `readyMsMax`; the reading goes on, and a later call may find it done. */
  async ready(): Promise<void> {
    if (!this.#following) this.#follow();
    const late = new AbortController();
    const timeout = sleep(this.#options.readyMsMax, 'late' as const, { signal: late.signal, ref: false }).catch(
      () => 'late' as const,
    );
    const end = await Promise.race([this.#complete.promise, timeout]);
    late.abort();
    if (end === 'late') throw new A2AError('UNAVAILABLE', { detail: 'the tasks are still being read' });
  }

  /** What this process has seen of a task: it knows its own earlier than the bucket tells. */
  note(taskId: string, entry: Omit<TaskIndexEntry, 'first'>): void {
    const { role, generation, at, contextId, state, owner } = entry;
    const known = this.#known.get(taskId);
    if (role !== this.#options.role || (known !== undefined && known.generation >= generation)) return;
    this.forget(taskId);
    const task = { taskId, at, contextId, state, generation, owner };
    this.#known.set(taskId, task);
    this.#ordered.splice(this.#placeOf(task), 0, task);
    if (this.#ordered.length > this.#options.entriesMax) this.#known.delete(this.#ordered.shift()!.taskId);
  }

  /** The log has the task no more. */
  forget(taskId: string): void {
    const known = this.#known.get(taskId);
    if (known === undefined) return;
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

  #follow(): void {
    this.#following = true;
    const following = followBucket(this.#options.tasks, this.#closing.signal, {
      // Nothing is forgotten when the bucket is read anew: nobody deletes from it, and what retention takes is noticed when it is read.
      begin: () => {},
      change: ({ key, value }) => (value === undefined ? this.forget(key) : this.note(key, value)),
      ready: () => this.#complete.resolve(),
      lost: error => this.#options.lost(error),
    });
    // It goes on by itself after a loss; whoever waits is told by the time limit.
    following.catch(() => {});
  }

  /** Index of the first task that is not older than `place`. */
  #placeOf(place: Place): number {
    let [low, high] = [0, this.#ordered.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (comparePlaces(this.#ordered[middle]!, place) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
