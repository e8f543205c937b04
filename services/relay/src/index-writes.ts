import { isInProgress, isInterrupted, isTerminal } from '@hopline/a2a';
import { BoundedMap, type Log } from '@hopline/log';
import { type IndexWrite, type OpenTask, replaces, storeEntry } from './index-entry.ts';

/**
 * Delay before the entry of a task that has ended or waits for its client is written. All changes in this time are combined into one write,
 * which does not compete with the first text of other tasks.
 */
const INDEX_DELAY_MS = 25;
/**
 * Delay for a running task. It may be long, because lists read running tasks from the log and none of its deadlines is near. A task that
 * ends sooner takes only one write.
 */
export const RUNNING_INDEX_DELAY_MS = 500;
/** Number of open tasks whose entries by id are known without a read. */
const KNOWN_TASKS_MAX = 16_384;

/** The entries in the task lists. `open`: those of open tasks, as far as this relay knows them. */
type ListWrites = {
  readonly open: ReadonlyMap<string, OpenTask>;
  store(taskId: string, write: IndexWrite): Promise<void>;
};

/**
 * Writes the task index, one write per task at a time. Each write names the revision that it replaces, so that it never replaces the entry
 * of a later record. Otherwise the write of a relay that lost the task could set a `working` entry for a task in input-required, which
 * would then get no deadline.
 */
export class IndexWrites {
  readonly #tasks: Log['tasks'];
  readonly #lists: ListWrites | undefined;
  readonly #waiting = new Map<string, WaitingWrite>();
  readonly #inFlight = new Map<string, Promise<unknown>>();
  /**
   * The entries by id of open tasks, as this relay wrote them; undefined while a write is in flight and after a failed write. Those that
   * changed longest ago are dropped first.
   */
  readonly #byId = new BoundedMap<string, OpenTask | undefined>(KNOWN_TASKS_MAX);
  #timer: NodeJS.Timeout | undefined;
  #wakeAtMs = Number.POSITIVE_INFINITY;

  /** `lists`: written first. */
  constructor(tasks: Log['tasks'], lists?: ListWrites) {
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

  /** Whether the stored entry shows that the task waits for its client. Lists, and the deadline of the answer, depend on that entry. */
  #isShownWaiting(taskId: string): boolean {
    const known = this.#lists?.open.get(taskId);
    return known !== undefined && isInterrupted(known.entry.state);
  }

  #wakeBy(atMs: number): void {
    if (atMs >= this.#wakeAtMs) return;
    clearTimeout(this.#timer);
    this.#wakeAtMs = atMs;
    this.#timer = setTimeout(() => this.#writeDue(), Math.max(0, Math.ceil(atMs - performance.now())));
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
    // Only lists show tasks, so the entry by id stays small.
    const { listed: _listed, ...byId } = write;
    // A task of one turn, like most tasks, has no entry yet. If the new entry has no time of its own, it takes the time of the stored one.
    const isFirst = !this.#byId.has(taskId) && write.at !== undefined;
    const expected = isFirst ? 'absent' : this.#byId.get(taskId);
    this.#byId.set(taskId, undefined);
    const stored = await storeEntry(this.#tasks, taskId, byId, expected);
    if (stored === undefined || isTerminal(stored.entry.state)) this.#byId.delete(taskId);
    else this.#byId.set(taskId, stored);
  }
}

type WaitingWrite = {
  entry: IndexWrite;
  /** True if the task is running and its stored entry shows that. */
  mayWait: boolean;
  dueAtMs: number;
  stored: PromiseWithResolvers<void>;
};
