import { isInProgress, isInterrupted } from '@hopline/a2a';
import { type Log, LogConflict, LogUnavailable, type TaskIndexEntry } from '@hopline/log';
import type { OpenTask } from './task-deadlines.ts';

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
  readonly #known: (taskId: string) => OpenTask | undefined;
  readonly #waiting = new Map<string, WaitingWrite>();
  readonly #inFlight = new Map<string, Promise<unknown>>();
  #timer: NodeJS.Timeout | undefined;
  #wakeAtMs = Number.POSITIVE_INFINITY;

  /** `known`: the entry of a task that this process has received, which saves a read. If it is out of date, it costs a conflict. */
  constructor(tasks: Log['tasks'], known: (taskId: string) => OpenTask | undefined = () => undefined) {
    this.#tasks = tasks;
    this.#known = known;
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
    const known = this.#known(taskId);
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
    let known = this.#known(taskId);
    for (let tries = 0; tries < INDEX_TRIES_MAX; tries++) {
      const found = known ?? (await this.#read(taskId));
      known = undefined;
      if (found !== undefined && !replaces(write, found.entry)) return;
      const entry = { ...write, at: write.at ?? found?.entry.at ?? Date.now() };
      try {
        if (found === undefined) await this.#tasks.create(taskId, entry);
        else await this.#tasks.update(taskId, entry, found.revision);
        return;
      } catch (error) {
        if (!(error instanceof LogConflict)) throw error;
      }
    }
    throw new LogUnavailable(`the index entry of a task changed during each of ${INDEX_TRIES_MAX} tries to write it`);
  }

  async #read(taskId: string): Promise<OpenTask | undefined> {
    const found = await this.#tasks.get(taskId);
    return found && { entry: found.value, revision: found.revision };
  }
}

/** An entry. Without `at`, the time of the previous entry is kept. */
type IndexWrite = Omit<TaskIndexEntry, 'at'> & { at: number | undefined };
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
