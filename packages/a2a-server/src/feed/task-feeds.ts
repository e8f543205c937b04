import { A2AError } from '@hopline/a2a';
import { isSameOwner, type Owner, type Role, type TaskAggregate } from '@hopline/events';
import type { Log, StoredFacts } from '@hopline/log';
import type { Limits } from '../limits.ts';
import { fromLog } from '../log-faults.ts';
import type { TaskLists } from '../task-lists.ts';
import { ByteBudget } from './byte-budget.ts';
import type { TaskChange } from './feed-listener.ts';
import { type FeedBudgets, type HistoryAt, type OpenMode, type ReadView, readHistory, readView, TaskFeed } from './task-feed.ts';

/** A lease of a feed. Release it once. */
export type FeedLease = { feed: TaskFeed; release(): void };

type CachedFeed = {
  feed: TaskFeed;
  opening: Promise<void>;
  users: number;
  linger: NodeJS.Timeout | undefined;
  /** When a request first found that the task had ended, on the clock of `performance.now`. */
  endedMs?: number;
};

/**
 * The feeds of this process, one per task with viewers. A task of another role or owner is TASK_NOT_FOUND, so that its
 * existence stays hidden.
 */
export class TaskFeeds {
  readonly #log: Log;
  readonly #role: Role;
  readonly #limits: Limits;
  readonly #lists: TaskLists;
  readonly #budgets: FeedBudgets;
  readonly #feeds = new Map<string, CachedFeed>();
  /** Feeds without users, oldest first. */
  readonly #idle = new Set<CachedFeed>();

  constructor(log: Log, role: Role, limits: Limits, lists: TaskLists) {
    this.#lists = lists;
    this.#log = log;
    this.#role = role;
    this.#limits = limits;
    this.#budgets = { rings: new ByteBudget(limits.ringsBytesMax), views: new ByteBudget(limits.viewsBytesMax) };
  }

  /** Throws TASK_NOT_FOUND (mode `existing`) or UNAVAILABLE. */
  async acquire(taskId: string, mode: OpenMode, caller: Owner): Promise<FeedLease> {
    const known = this.#feeds.get(taskId);
    const cached = known === undefined || this.#isOutdated(known, mode) ? this.#open(taskId, mode) : known;
    this.#use(cached);
    try {
      await cached.opening;
      if (cached === known && mode === 'existing') await cached.feed.refresh();
      if (cached.feed.aggregate !== undefined) this.#assertVisible(cached.feed.aggregate, caller);
    } catch (thrown) {
      this.#release(cached);
      // Another request opened the feed before the task existed.
      const raced = cached === known && mode !== 'existing' && thrown instanceof A2AError && thrown.code === 'TASK_NOT_FOUND';
      if (raced && cached.feed.aggregate === undefined) return this.acquire(taskId, mode, caller);
      throw thrown;
    }
    let released = false;
    const release = () => {
      if (!released) this.#release(cached);
      released = true;
    };
    return { feed: cached.feed, release };
  }

  /**
   * The task as it is in the log now: from its feed if one is open, otherwise from one read. `newest`: its newest record, if it was just
   * read.
   */
  async view(taskId: string, caller: Owner, newest?: StoredFacts): Promise<ReadView> {
    if (this.#feeds.has(taskId)) {
      const { feed, release } = await this.acquire(taskId, 'existing', caller);
      release();
      return (await feed.readView()).view;
    }
    try {
      const last = newest ?? (await this.#log.facts.last(taskId));
      if (last !== undefined) this.#assertVisible(last.record.aggregate, caller);
      return (await readView(this.#log.facts, last, this.#limits.answerBytesMax)).view;
    } catch (thrown) {
      throw fromLog(thrown, taskId);
    }
  }

  /** Like `view`, with the timeline. */
  async history(taskId: string, caller: Owner): Promise<HistoryAt> {
    if (this.#feeds.has(taskId)) {
      const { feed, release } = await this.acquire(taskId, 'existing', caller);
      release();
      return feed.readHistory();
    }
    try {
      const last = await this.#log.facts.last(taskId);
      if (last !== undefined) this.#assertVisible(last.record.aggregate, caller);
      return await readHistory(this.#log.facts, last, this.#limits.answerBytesMax);
    } catch (thrown) {
      throw fromLog(thrown, taskId);
    }
  }

  /**
   * The newest aggregate of a task, without its history; undefined when no task has the id. Throws TASK_NOT_FOUND when the task
   * is not the caller's.
   */
  async aggregate(taskId: string, caller: Owner): Promise<TaskAggregate | undefined> {
    try {
      const aggregate = (await this.#log.facts.last(taskId))?.record.aggregate;
      if (aggregate !== undefined) this.#assertVisible(aggregate, caller);
      return aggregate;
    } catch (thrown) {
      throw fromLog(thrown, taskId);
    }
  }

  close(): void {
    for (const cached of this.#feeds.values()) this.#drop(cached);
  }

  #assertVisible({ role, owner }: TaskAggregate, caller: Owner): void {
    if (role !== this.#role || !isSameOwner(owner, caller)) throw new A2AError('TASK_NOT_FOUND');
  }

  /** The feed of an ended task follows nothing and does not notice when the log removes the task, so it is used for only a short time. */
  #isOutdated(cached: CachedFeed, mode: OpenMode): boolean {
    const { feed } = cached;
    if (feed.fault !== undefined || !feed.ended || mode !== 'existing') return feed.fault !== undefined;
    const nowMs = performance.now();
    cached.endedMs ??= nowMs;
    return nowMs - cached.endedMs >= this.#limits.feedLingerMs;
  }

  #open(taskId: string, mode: OpenMode): CachedFeed {
    const feed = new TaskFeed(taskId, this.#log, this.#limits, this.#budgets);
    feed.listen({ onChange: fact => this.#note(feed, fact) });
    const cached: CachedFeed = { feed, opening: feed.open(mode), users: 0, linger: undefined };
    this.#feeds.set(taskId, cached);
    // Waiting requests get the error, and the failed feed must not be reused.
    cached.opening.catch(() => this.#drop(cached));
    return cached;
  }

  /** Makes sure that a status which a client saw here is in its next list from here. */
  #note({ taskId, aggregate }: TaskFeed, fact: TaskChange): void {
    if (fact.kind !== 'task.created' && fact.kind !== 'status.changed') return;
    const { contextId, role, owner } = aggregate!;
    const { state } = 'task' in fact.event ? fact.event.task.status : fact.event.statusUpdate.status;
    this.#lists.note(taskId, { contextId, role, state, generation: fact.generation, at: fact.at, ...(owner && { owner }) });
  }

  #use(cached: CachedFeed): void {
    cached.users += 1;
    this.#idle.delete(cached);
    clearTimeout(cached.linger);
  }

  #release(cached: CachedFeed): void {
    cached.users -= 1;
    if (cached.users > 0) return;
    if (cached.feed.aggregate === undefined || cached.feed.fault !== undefined) {
      this.#drop(cached);
      return;
    }
    this.#idle.add(cached);
    cached.linger = setTimeout(() => this.#drop(cached), this.#limits.feedLingerMs).unref();
    const oldest = this.#idle.values().next().value;
    if (this.#idle.size > this.#limits.idleFeedsMax && oldest !== undefined) this.#drop(oldest);
  }

  #drop(cached: CachedFeed): void {
    clearTimeout(cached.linger);
    this.#idle.delete(cached);
    cached.feed.close();
    cached.feed.empty();
    if (this.#feeds.get(cached.feed.taskId) === cached) this.#feeds.delete(cached.feed.taskId);
  }
}
