import { isInProgress, isInterrupted } from '@hopline/a2a';
import { type KeyValue, type Log, LogConflict, LogUnavailable, type TaskIndexEntry } from '@hopline/log';
import type { OpenTask, ShardTasks } from './shard-tasks.ts';

/** Tries of one index write. Each conflict means that another relay has written, and a task has two relays during a takeover. */
export const INDEX_TRIES_MAX = 8;
/**
 * Delay before the entry of a task that has ended or waits for its client is written. All its changes in this time take one write, which
 * does not compete with the first text of other tasks.
 */
const INDEX_DELAY_MS = 25;
/**
 * The same for a running task: lists read such tasks from the log, and none of its deadlines is near. A task that ends sooner takes one
 * write.
 */
export const RUNNING_INDEX_DELAY_MS = 500;

/**
 * Writes the task index, one write per task at a time. Each write names the revision that it replaces, so that it never replaces the entry
 * of a later record: a relay that lost the task may have a write in flight, and a `working` entry for a task in input-required would cause no
 * deadline.
 */
export class IndexWrites {
  readonly #tasks: Log['tasks'];
  readonly #lists: Pick<ShardTasks, 'open' | 'store'> | undefined;
  readonly #waiting = new Map<string, WaitingWrite>();
  readonly #inFlight = new Map<string, Promise<unknown>>();
  #timer: NodeJS.Timeout | undefined;
  #wakeAtMs = Number.POSITIVE_INFINITY;

  /** `lists`: written first. */
  constructor(tasks: Log['tasks'], lists?: Pick<ShardTasks, 'open' | 'store'>) {
    this.#tasks = tasks;
    this.#lists = lists;
  }

  /** Resolves when this entry or a later one is stored. */
  put(taskId: string, entry: IndexWrite): Promise<void> {
    const mayWait = isInProgress(entry.state) && !this.#isShownWaiting(taskId);
    const dueAtMs = performance.now() + (mayWait ? RUNNING_INDEX_DELAY_MS : INDEX_DELAY_MS);
    let waiting = this.#waiting.get(taskId);
    if (waiting === undefined) {
      waiting = { entry, mayWait, dueAtMs, stored: Promise.withResolvers<void>() };
      this.#waiting.set(taskId, waiting);
    } else {
      if (replaces(entry, waiting.entry)) waiting.entry = { ...entry, at: entry.at ?? waiting.entry.at };
      waiting.mayWait &&= mayWait;
      waiting.dueAtMs = Math.min(waiting.dueAtMs, dueAtMs);
    }
    this.#wakeBy(waiting.dueAtMs);
    return waiting.stored.promise;
  }

  /** Whether the stored entry shows that the task waits for its client: lists and the deadline of the answer depend on that entry. */
  #isShownWaiting(taskId: string): boolean {
    const known = this.#lists?.open.get(taskId);
    return known !== undefined && isInterrupted(known.entry.state);
  }

  #wakeBy(atMs: number): void {
    if (atMs >= this.#wakeAtMs) return;
    clearTimeout(this.#timer);
    this.#wakeAtMs = atMs;
    this.#timer = setTimeout(() => this.#writeDue(), Math.ceil(atMs - performance.now()));
  }

  /** Tasks that have ended are written together, even if their delay is not over. */
  #writeDue(): void {
    this.#wakeAtMs = Number.POSITIVE_INFINITY;
    const nowMs = performance.now();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [taskId, { entry, mayWait, dueAtMs, stored }] of this.#waiting) {
      if (mayWait && dueAtMs > nowMs) {
        nextMs = Math.min(nextMs, dueAtMs);
        continue;
      }
      this.#waiting.delete(taskId);
      this.#write(taskId, entry).then(stored.resolve, stored.reject);
    }
    if (nextMs < Number.POSITIVE_INFINITY) this.#wakeBy(nextMs);
  }

  #write(taskId: string, entry: IndexWrite): Promise<void> {
    const put = () => this.#put(taskId, entry);
    const before = this.#inFlight.get(taskId);
    const write = before === undefined ? put() : before.then(put, put);
    this.#inFlight.set(taskId, write);
    const settled = () => {
      if (this.#inFlight.get(taskId) === write) this.#inFlight.delete(taskId);
    };
    write.then(settled, settled);
    return write;
  }

  async #put(taskId: string, write: IndexWrite): Promise<void> {
    await this.#lists?.store(taskId, write);
    await storeEntry(this.#tasks, taskId, write);
  }
}

/**
 * Stores an entry unless a later one is stored: resolves with what is stored then, and undefined if nothing had to be. `known`: the entry as this
 * process wrote it, which saves a read; an older one costs a conflict. `isSettled`: asked when there is no entry, whether there should be none.
 */
export async function storeEntry(
  bucket: KeyValue<TaskIndexEntry>,
  key: string,
  write: IndexWrite,
  known?: OpenTask,
  isSettled: () => Promise<boolean> = async () => false,
): Promise<OpenTask | undefined> {
  let expected = known;
  for (let tries = 0; tries < INDEX_TRIES_MAX; tries++) {
    const found = expected ?? (await read(bucket, key));
    expected = undefined;
    if (found !== undefined && !replaces(write, found.entry)) return found;
    if (found === undefined && (await isSettled())) return undefined;
    const entry = { ...write, at: write.at ?? found?.entry.at ?? Date.now() };
    try {
      const revision = found === undefined ? await bucket.create(key, entry) : await bucket.update(key, entry, found.revision);
      return { entry, revision };
    } catch (error) {
      if (!(error instanceof LogConflict)) throw error;
    }
  }
  throw new LogUnavailable(`the index entry of a task changed during each of ${INDEX_TRIES_MAX} tries to write it`);
}

async function read(bucket: KeyValue<TaskIndexEntry>, key: string): Promise<OpenTask | undefined> {
  const found = await bucket.get(key);
  return found && { entry: found.value, revision: found.revision };
}

/** An entry. Without `at`, the time of the previous entry is kept. */
export type IndexWrite = Omit<TaskIndexEntry, 'at'> & { at: number | undefined };
type WaitingWrite = {
  entry: IndexWrite;
  /** True if the task runs and its stored entry shows that. */
  mayWait: boolean;
  dueAtMs: number;
  stored: PromiseWithResolvers<void>;
};

/** Whether an entry comes from a later record than the stored one; a copy-forward keeps the generation. */
function replaces(entry: IndexWrite, stored: IndexWrite): boolean {
  if (entry.generation !== stored.generation) return entry.generation > stored.generation;
  return (entry.startStoredAt ?? 0) > (stored.startStoredAt ?? 0);
}
