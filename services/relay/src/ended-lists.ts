import { shardOf } from '@hopline/events';
import {
  addEnded,
  ENDED_ADDED_MAX,
  type EndedPageRange,
  type EndedTask,
  type EndedTasks,
  endedPageKey,
  endedTaskOf,
  isEndedTasks,
  type Log,
  listKeyOf,
  listPrefixOf,
  parseListKey,
  removedBefore,
  removeEnded,
  shardListsFilter,
  type TaskIndexEntry,
} from '@hopline/log';
import type { Logger } from '@hopline/telemetry';
import { retryConflicts } from './retry-conflicts.ts';

/**
 * Longest time before an ended task moves into its list. It is long because each move reads and writes the list, and with 256 shards an
 * owner seldom has two tasks that end in one shard within seconds.
 */
const MOVE_MS = 30_000;
/** How often in that period the relay looks for lists that are due. */
const LOOKS = 6;
/**
 * Number of tasks at which a list moves without that wait. It keeps the entries of an owner few, because a reader of its list reads all of
 * them.
 */
const MOVED_SOON_MIN = 8;
/** Lists that are written at the same time, and entries of one list that are removed at the same time. */
const LISTS_AT_ONCE_MAX = 8;
const PURGES_AT_ONCE_MAX = 16;

/** `sinceMs`: on the clock of `performance.now`. */
type Waiting = { prefix: string; key: string; shard: number; task: EndedTask; revision: number; sinceMs: number };

type EndedListsOptions = { log: Pick<Log, 'taskLists' | 'facts' | 'layouts'>; logger: Logger; moveMs?: number };

/**
 * Moves the entries of ended tasks into the lists of their owners. A list has many tasks in one message, so that few messages must be read
 * however many tasks a caller has, and a relay that takes a shard reads only the entries of open tasks. An entry is removed only after the
 * list with its task is stored, so a reader always finds the task.
 */
export class EndedLists {
  readonly #options: EndedListsOptions;
  readonly #waiting = new Map<string, Waiting>();
  readonly #timer: NodeJS.Timeout;
  #isMoving = false;

  constructor(options: EndedListsOptions) {
    this.#options = options;
    const { moveMs = MOVE_MS } = options;
    const lookMs = moveMs / LOOKS;
    this.#timer = setInterval(() => void this.move(moveMs - lookMs), lookMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  add(taskId: string, { entry, revision }: { entry: TaskIndexEntry; revision: number }): void {
    const { layouts } = this.#options.log;
    const key = listKeyOf(taskId, entry, layouts);
    const prefix = listPrefixOf(taskId, entry, layouts);
    const waiting = { prefix, key, shard: shardOf(taskId, layouts), task: endedTaskOf(taskId, entry), revision };
    this.#waiting.set(taskId, { ...waiting, sinceMs: performance.now() });
  }

  /** The shard has another owner, which will find the entries. */
  forget(shard: number): void {
    for (const [taskId, waiting] of this.#waiting) if (waiting.shard === shard) this.#waiting.delete(taskId);
  }

  /** Moves the lists that have many tasks, or one that has waited for `waitedMs`. */
  async move(waitedMs: number): Promise<void> {
    if (this.#isMoving || this.#waiting.size === 0) return;
    this.#isMoving = true;
    const dueMs = performance.now() - waitedMs;
    // A map keeps the order of additions, so the first task of a list has waited longest.
    const lists = [...Map.groupBy(this.#waiting.values(), ({ prefix }) => prefix)].filter(
      ([, tasks]) => tasks.length >= MOVED_SOON_MIN || tasks[0]!.sinceMs <= dueMs,
    );
    for (let at = 0; at < lists.length; at += LISTS_AT_ONCE_MAX) {
      const some = lists.slice(at, at + LISTS_AT_ONCE_MAX);
      await Promise.all(some.map(([prefix, tasks]) => this.#moveList(prefix, tasks)));
    }
    this.#isMoving = false;
  }

  async #moveList(prefix: string, tasks: readonly Waiting[]): Promise<void> {
    const { log, logger } = this.#options;
    try {
      for (let at = 0; at < tasks.length; at += ENDED_ADDED_MAX)
        await this.store(
          prefix,
          tasks.slice(at, at + ENDED_ADDED_MAX).map(({ task }) => task),
        );
      for (let at = 0; at < tasks.length; at += PURGES_AT_ONCE_MAX) {
        const some = tasks.slice(at, at + PURGES_AT_ONCE_MAX);
        await Promise.all(some.map(({ key, revision }) => log.taskLists.purge(key, revision)));
      }
      for (const waiting of tasks) {
        const [taskId] = waiting.task;
        if (this.#waiting.get(taskId) === waiting) this.#waiting.delete(taskId);
      }
    } catch (error) {
      // The next move tries again.
      logger.warn({ err: error }, 'ended tasks could not be listed');
    }
  }

  /** Adds ended tasks to a list. */
  store(prefix: string, tasks: readonly EndedTask[]): Promise<void> {
    return retryConflicts(() => addEnded(this.#options.log.taskLists, prefix, tasks));
  }

  /**
   * Removes from the lists the tasks of a shard whose facts are gone, because retention has removed or the log has lost them. The age limit
   * of the bucket does not do so, because the age of a list starts again with each write.
   */
  async removeGone(shard: number): Promise<void> {
    const { log, logger } = this.#options;
    const { taskLists } = log;
    try {
      const { firstSeq, lastSeq } = (await log.facts.extent()).ofShard(shard);
      const removal = removedBefore(firstSeq);
      for (const { key, value } of await taskLists.match([shardListsFilter(shard)])) {
        if (!isEndedTasks(value)) continue;
        const { prefix } = parseListKey(key);
        const lost = await this.#lostTasks(prefix, value, lastSeq);
        const isGone = (task: EndedTask) => removal.isGone(task) || lost.has(task[0]);
        const mayBeIn = (page: EndedPageRange) => removal.mayBeIn(page) || (lost.size > 0 && page.seqTo > lastSeq);
        if (!(value.ended.some(isGone) || value.pages.some(mayBeIn))) continue;
        await retryConflicts(() => removeEnded(taskLists, prefix, { isGone, mayBeIn }));
      }
    } catch (error) {
      logger.warn({ shard, err: error }, 'removed tasks could not be taken from the lists');
    }
  }

  /**
   * The tasks of a list that name a record beyond the end of the log and have no facts, because the stream of facts was lost and created
   * again. Both conditions are necessary: such a task may have been folded again from its inputs, and a task that has just ended may be
   * newer than `lastSeq`.
   */
  async #lostTasks(prefix: string, { ended, pages }: EndedTasks, lastSeq: number): Promise<ReadonlySet<string>> {
    const { facts, taskLists } = this.#options.log;
    const lost = new Set<string>();
    const examine = async (tasks: readonly EndedTask[]) => {
      for (const [taskId, , , , , seq] of tasks) if (seq > lastSeq && (await facts.last(taskId)) === undefined) lost.add(taskId);
    };
    await examine(ended);
    for (const { n, seqTo } of pages) {
      const page = seqTo > lastSeq ? await taskLists.get(endedPageKey(prefix, n)) : undefined;
      if (page !== undefined && 'ended' in page.value) await examine(page.value.ended);
    }
    return lost;
  }
}
