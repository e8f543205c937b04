import { A2AError } from '@hopline/a2a';
import { type Fact, isSameOwner, type Owner, type Role, type TaskAggregate } from '@hopline/events';
import { type Log, readTask } from '@hopline/log';
import { projectRecord, type TaskView } from '@hopline/task';
import type { Limits } from '../limits.ts';
import { fromLog } from '../log-faults.ts';
import type { TaskIndex } from '../task-index.ts';
import { type OpenMode, TaskFeed } from './task-feed.ts';

/** The right to use a feed. Give it back once. */
export type FeedLease = { feed: TaskFeed; release(): void };

type CachedFeed = { feed: TaskFeed; opening: Promise<void>; users: number; linger: NodeJS.Timeout | undefined };

/** The feeds of this process, one per task that somebody looks at. A task of another role or owner is no task here: "not yours" looks like "not found". */
export class TaskFeeds {
  readonly #log: Log;
  readonly #role: Role;
  readonly #limits: Limits;
  readonly #index: TaskIndex;
  readonly #held = new Map<string, CachedFeed>();
  /** Without users, oldest first. */
  readonly #idle = new Set<CachedFeed>();

  constructor(log: Log, role: Role, limits: Limits, index: TaskIndex) {
    this.#index = index;
    this.#log = log;
    this.#role = role;
    this.#limits = limits;
  }

  /** Throws TASK_NOT_FOUND (mode `existing`) or UNAVAILABLE. */
  async acquire(taskId: string, mode: OpenMode, caller: Owner): Promise<FeedLease> {
    const known = this.#held.get(taskId);
    const held = known === undefined || known.feed.fault !== undefined ? this.#open(taskId, mode) : known;
    this.#use(held);
    try {
      await held.opening;
      if (held === known && mode === 'existing') await held.feed.refresh();
      if (held.feed.aggregate !== undefined) this.#assertVisible(held.feed.aggregate, caller);
    } catch (thrown) {
      this.#release(held);
      // Somebody else asked for this task when it was not there yet.
      const raced = held === known && mode !== 'existing' && thrown instanceof A2AError && thrown.code === 'TASK_NOT_FOUND';
      if (raced && held.feed.aggregate === undefined) return this.acquire(taskId, mode, caller);
      throw thrown;
    }
    let released = false;
    const release = () => {
      if (!released) this.#release(held);
      released = true;
    };
    return { feed: held.feed, release };
  }

  /** The task as it is in the log now: from its feed where there is one, else read once. */
  async view(taskId: string, caller: Owner): Promise<TaskView> {
    if (this.#held.has(taskId)) {
      const { feed, release } = await this.acquire(taskId, 'existing', caller);
      release();
      return feed.view!;
    }
    try {
      const last = await this.#log.facts.last(taskId);
      if (last === undefined) throw new A2AError('TASK_NOT_FOUND');
      this.#assertVisible(last.record.aggregate, caller);
      let view: TaskView | undefined;
      for await (const { record } of readTask(this.#log.facts, last)) view = projectRecord(view, record);
      return view ?? projectRecord(undefined, last.record);
    } catch (thrown) {
      throw fromLog(thrown, taskId);
    }
  }

  /** What the newest record of a task says of it, without its history; undefined for an id that no task has. Throws TASK_NOT_FOUND for a task that is not the caller's. */
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
    for (const held of this.#held.values()) this.#drop(held);
  }

  #assertVisible({ role, owner }: TaskAggregate, caller: Owner): void {
    if (role !== this.#role || !isSameOwner(owner, caller)) throw new A2AError('TASK_NOT_FOUND');
  }

  #open(taskId: string, mode: OpenMode): CachedFeed {
    const feed = new TaskFeed(taskId, this.#log, this.#limits);
    feed.listen({ onFact: fact => this.#note(feed, fact) });
    const held: CachedFeed = { feed, opening: feed.open(mode), users: 0, linger: undefined };
    this.#held.set(taskId, held);
    // Whoever waits for it gets the error; the feed itself must not be found again.
    held.opening.catch(() => this.#drop(held));
    return held;
  }

  /** Whoever was told of a status here finds it in the next list here. */
  #note({ taskId, aggregate }: TaskFeed, fact: Fact): void {
    if (fact.kind !== 'task.created' && fact.kind !== 'status.changed') return;
    const { contextId, role, owner } = aggregate!;
    const { state } = 'task' in fact.event ? fact.event.task.status : fact.event.statusUpdate.status;
    this.#index.note(taskId, { contextId, role, state, generation: fact.generation, at: fact.at, ...(owner && { owner }) });
  }

  #use(held: CachedFeed): void {
    held.users += 1;
    this.#idle.delete(held);
    clearTimeout(held.linger);
  }

  #release(held: CachedFeed): void {
    held.users -= 1;
    if (held.users > 0) return;
    if (held.feed.view === undefined || held.feed.fault !== undefined) {
      this.#drop(held);
      return;
    }
    this.#idle.add(held);
    held.linger = setTimeout(() => this.#drop(held), this.#limits.feedLingerMs).unref();
    const oldest = this.#idle.values().next().value;
    if (this.#idle.size > this.#limits.idleFeedsMax && oldest !== undefined) this.#drop(oldest);
  }

  #drop(held: CachedFeed): void {
    clearTimeout(held.linger);
    this.#idle.delete(held);
    held.feed.close();
    if (this.#held.get(held.feed.taskId) === held) this.#held.delete(held.feed.taskId);
  }
}
