import { isInProgress, isInterrupted } from '@hopline/a2a';
import { entryOf, type TaskAggregate } from '@hopline/events';
import { fromStart, type Log, LogFull, newestForWork, requestLost, type StoredFacts, startSeqOf } from '@hopline/log';
import { rootProducer } from '@hopline/task';
import { type Logger, taskLogger } from '@hopline/telemetry';
import type { ShardTasks } from './shard-tasks.ts';
import { type Item, itemOf, messageItemId } from './side-effects.ts';

/** Time between two checks. */
const CHECK_MS = 5_000;
/** Number of tasks that one check may examine. Each costs a read of its newest record and, if it is silent, a read of the queue. */
const EXAMINED_PER_CHECK_MAX = 256;
/**
 * The item of a turn that has not begun is looked for when nothing has been stored for this long, and again whenever this time has passed.
 */
export const UNBEGUN_SILENT_MS = 60_000;
/** The same time for a turn that has begun. Its worker may still run it, and may be silent because its agent is. */
const BEGUN_SILENT_MS = 5 * 60_000;
/**
 * The same time for a task that, according to its entry, waits for its client. The log may have lost the question, the input that made it,
 * and the item.
 */
export const WAITING_SILENT_MS = 60 * 60_000;

/** In milliseconds; only tests set it. */
export type LostTurnsTimes = { checkMs?: number; unbegunSilentMs?: number; begunSilentMs?: number; waitingSilentMs?: number };

type LostTurnsOptions = LostTurnsTimes & {
  log: Pick<Log, 'inputs' | 'facts' | 'work'>;
  /** Open tasks of the shards of this relay. */
  tasks: Pick<ShardTasks, 'open'>;
  /** Whether this relay owns the shard of the task now. */
  owns: (taskId: string) => boolean;
  /** Whether an input, an append or a side effect of the task is in progress in this relay. */
  isBusy: (taskId: string) => boolean;
  /** Epoch milliseconds. */
  now: () => number;
  logger: Logger;
};

/**
 * Finds turns whose work item the queue has lost (a single server lost power, or the stream was purged), so that no worker would ever begin
 * or end them. The entry of such a turn may already show the question that ended it, even if the log has lost the question. If the turn has
 * not begun, its item is queued again. If it has begun, it fails as retryable, because a second item would not be folded (ADR 35), after
 * everything that its worker stored has been folded. The supervisor does the same for the items of its calls.
 */
export class LostTurns {
  readonly #options: LostTurnsOptions;
  readonly #timer: NodeJS.Timeout;
  /**
   * When a task is examined next, in epoch milliseconds, depending on whether its entry shows that it waits. Absent: when its entry is old
   * enough.
   */
  readonly #dueAt = new Map<string, { at: number; isWaiting: boolean }>();
  #isChecking = false;
  #isStopped = false;

  constructor(options: LostTurnsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#check(), options.checkMs ?? CHECK_MS);
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const { tasks, owns, isBusy, now, logger } = this.#options;
    const { open } = tasks;
    for (const taskId of this.#dueAt.keys()) if (!open.has(taskId)) this.#dueAt.delete(taskId);
    const due: { taskId: string; at: number; isWaiting: boolean }[] = [];
    for (const [taskId, { entry }] of open) {
      const isWaiting = isInterrupted(entry.state);
      const next = this.#dueAt.get(taskId);
      const at = Math.max(entry.at + this.#entrySilentMs(isWaiting), next?.isWaiting === isWaiting ? next.at : 0);
      if (at <= now() && owns(taskId) && !isBusy(taskId)) due.push({ taskId, at, isWaiting });
    }
    due.sort((one, other) => one.at - other.at);
    try {
      for (const { taskId, isWaiting } of due.slice(0, EXAMINED_PER_CHECK_MAX)) {
        if (this.#isStopped) break;
        await this.#examine(taskId, isWaiting);
      }
    } catch (error) {
      logger.warn({ err: error }, 'the work items of silent turns could not be checked');
    }
    this.#isChecking = false;
  }

  async #examine(taskId: string, isWaiting: boolean): Promise<void> {
    const { log, now } = this.#options;
    const newest = await log.facts.last(taskId);
    const aggregate = newest?.record.aggregate;
    const hasBegun = aggregate !== undefined && entryOf(aggregate.producers, rootProducer(aggregate)) !== undefined;
    const silentMs = this.#silentMs(hasBegun);
    const silentAt = (aggregate?.at ?? now()) + silentMs;
    this.#dueAt.set(taskId, { at: Math.max(silentAt, now() + this.#entrySilentMs(isWaiting)), isWaiting });
    if (newest === undefined || aggregate === undefined || silentAt > now() || !isInProgress(aggregate.state)) return;
    this.#dueAt.set(taskId, { at: now() + silentMs, isWaiting });
    if (await log.work.hasItem(aggregate.role, taskId)) return;
    if (hasBegun) await this.#end(aggregate);
    else await this.#queueAgain(newest);
  }

  async #end({ taskId, turn }: TaskAggregate): Promise<void> {
    const { log, now, logger } = this.#options;
    const input = { kind: 'work-gone', turn, lost: 'item' } as const;
    const record = { v: 1, at: Math.round(now()), from: 'relay', input } as const;
    await log.inputs.append(taskId, record, { id: `${taskId}:work-gone:${turn}:` });
    taskLogger(logger, taskId).warn({ turn, reason: 'work_lost' }, 'the queue has lost the work of the turn, which had begun');
  }

  async #queueAgain(newest: StoredFacts): Promise<void> {
    const { log, now, logger } = this.#options;
    const { taskId, turn } = newest.record.aggregate;
    const first = await this.#firstItem(newest);
    if (first === undefined) return;
    const { role, id, work } = first;
    const item = { ...work, queuedAt: Math.round(now()), ...newestForWork(newest) };
    try {
      await requestLost(log.work, role, item, { id, trace: newest.trace ?? {} });
    } catch (error) {
      // The next check finds the turn again.
      if (error instanceof LogFull) return;
      throw error;
    }
    taskLogger(logger, taskId).warn({ turn, reason: 'work_lost' }, 'the queue had lost the work of the turn: it is queued again');
  }

  /** The item for the message of the turn. Undefined if the log no longer has the message. */
  async #firstItem(newest: StoredFacts): Promise<Item | undefined> {
    const { aggregate } = newest.record;
    for await (const { record } of fromStart(this.#options.log.facts.read(aggregate.taskId, startSeqOf(newest))))
      for (const fact of record.facts) {
        const item = itemOf(fact, aggregate);
        if (item?.id === messageItemId(aggregate.taskId, aggregate.turn)) return item;
      }
    return undefined;
  }

  #entrySilentMs(isWaiting: boolean): number {
    const { waitingSilentMs = WAITING_SILENT_MS } = this.#options;
    return isWaiting ? waitingSilentMs : this.#silentMs(false);
  }

  #silentMs(hasBegun: boolean): number {
    const { unbegunSilentMs = UNBEGUN_SILENT_MS, begunSilentMs = BEGUN_SILENT_MS } = this.#options;
    return hasBegun ? begunSilentMs : unbegunSilentMs;
  }
}
