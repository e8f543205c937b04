import { isTerminal } from '@hopline/a2a';
import { type Log, LogConflict, LogUnavailable, type TaskIndexEntry } from '@hopline/log';

/** Tries of one index write. Each conflict is a write of another relay, and a task has two for the time of a takeover. */
export const INDEX_TRIES_MAX = 8;
/**
 * Wait before an index write, milliseconds: the changes of a task in this time are one write, which stays out of the way of the
 * task's first text. A short task is written once.
 */
const INDEX_DELAY_MS = 25;
/** Tasks whose own last index write is remembered, which saves the next write a read. */
const WRITTEN_MAX = 4_096;

/**
 * Writes the task index, one write per task at a time, and each by the revision that it replaces: never over an entry of a later
 * record. A relay that lost the task may have a write in flight; an entry that is `working` for a task in input-required makes no
 * deadline.
 */
export class IndexWrites {
  readonly #tasks: Log['tasks'];
  #waiting = new Map<string, WaitingWrite>();
  readonly #inFlight = new Map<string, Promise<unknown>>();
  /** Revision and entry of this relay's last write of a task, oldest first. */
  readonly #written = new Map<string, Written>();

  constructor(tasks: Log['tasks']) {
    this.#tasks = tasks;
  }

  /** Resolves when this entry or a later one is stored. */
  put(taskId: string, entry: IndexWrite): Promise<void> {
    const waiting = this.#waiting.get(taskId);
    if (waiting !== undefined) {
      if (replaces(entry, waiting.entry)) waiting.entry = { ...entry, at: entry.at ?? waiting.entry.at };
      return waiting.stored.promise;
    }
    if (this.#waiting.size === 0) setTimeout(() => this.#writeWaiting(), INDEX_DELAY_MS);
    const stored = Promise.withResolvers<void>();
    this.#waiting.set(taskId, { entry, stored });
    return stored.promise;
  }

  #writeWaiting(): void {
    const writes = this.#waiting;
    this.#waiting = new Map();
    for (const [taskId, { entry, stored }] of writes) this.#write(taskId, entry).then(stored.resolve, stored.reject);
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
    let known: Written | undefined = this.#written.get(taskId);
    for (let tries = 0; tries < INDEX_TRIES_MAX; tries++) {
      const found = known ?? (await this.#tasks.get(taskId));
      known = undefined;
      if (found !== undefined && !replaces(write, found.value)) return;
      const entry = { ...write, at: write.at ?? found?.value.at ?? Date.now() };
      try {
        const written =
          found === undefined ? this.#tasks.create(taskId, entry) : this.#tasks.update(taskId, entry, found.revision);
        this.#remember(taskId, { value: entry, revision: await written });
        return;
      } catch (error) {
        if (!(error instanceof LogConflict)) throw error;
      }
    }
    throw new LogUnavailable(`the index entry of a task changed during each of ${INDEX_TRIES_MAX} tries to write it`);
  }

  #remember(taskId: string, written: Written): void {
    this.#written.delete(taskId);
    if (!isTerminal(written.value.state)) this.#written.set(taskId, written);
    for (const oldest of this.#written.keys()) {
      if (this.#written.size <= WRITTEN_MAX) break;
      this.#written.delete(oldest);
    }
  }
}

/** An entry; without `at`, that of the entry before it is kept. */
type IndexWrite = Omit<TaskIndexEntry, 'at'> & { at: number | undefined };
type WaitingWrite = { entry: IndexWrite; stored: PromiseWithResolvers<void> };
type Written = { value: TaskIndexEntry; revision: number };

/** Whether an entry comes from a later record than the stored one; a copy-forward keeps the generation. */
function replaces(entry: IndexWrite, stored: IndexWrite): boolean {
  if (entry.generation !== stored.generation) return entry.generation > stored.generation;
  return (entry.startStoredAt ?? 0) > (stored.startStoredAt ?? 0);
}
