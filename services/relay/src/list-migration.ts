import { isTerminal } from '@hopline/a2a';
import { shardOf } from '@hopline/events';
import {
  backoffMs,
  ENDED_ADDED_MAX,
  type EndedTask,
  endedTaskOf,
  type Log,
  LogConflict,
  LogUnavailable,
  listKeyOf,
  listPrefixOf,
  type ShardProgress,
  sleepUnlessAborted,
  type TaskIndexEntry,
} from '@hopline/log';
import type { Logger } from '@hopline/telemetry';
import type { EndedLists } from './ended-lists.ts';
import type { ShardTasks } from './shard-tasks.ts';

/** Maximum number of ended tasks of all lists that are held in memory. */
const TASKS_IN_MEMORY_MAX = 50_000;
const WRITES_AT_ONCE_MAX = 64;
const RETRY_MS_BASE = 500;
const RETRY_MS_MAX = 30_000;

type ListMigrationOptions = {
  log: Pick<Log, 'tasks' | 'taskLists' | 'facts' | 'layouts'>;
  tasks: ShardTasks;
  ended: EndedLists;
  logger: Logger;
  checkMs?: number | undefined;
};

/** Time between two checks whether the bucket of the lists is still the same one. */
const CHECK_MS = 10_000;

/**
 * Enters tasks into the task lists from their entries by task id. It does so for shards whose last owner was a relay of an earlier version,
 * which wrote only entries by id, and for all shards after the bucket of the lists was lost and created again. The whole bucket of entries
 * by id is read once for all such shards of this relay together. Afterwards the lease has `listed`, for which servers wait, and `listedIn`,
 * the time at which the bucket of the lists was created, so that the next relay does not enter the tasks again.
 */
export class ListMigration {
  readonly #options: ListMigrationOptions;
  readonly #stop = new AbortController();
  readonly #listed = new Set<number>();
  /** Shards that wait to be entered. */
  readonly #unlisted = new Set<number>();
  #isRunning = false;
  /** When the bucket was created, as reported by `extent`. */
  #created = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ListMigrationOptions) {
    this.#options = options;
  }

  /** Needed before the first shard begins. */
  async start(): Promise<void> {
    this.#created = await this.#readCreated();
    this.#timer = setInterval(
      () => void this.#check().catch(error => this.#onCheckFailed(error)),
      this.#options.checkMs ?? CHECK_MS,
    );
  }

  /** The members of the lease of a shard that concern its lists. */
  listedIn(shard: number): Pick<ShardProgress, 'listed' | 'listedIn'> {
    return this.#listed.has(shard) ? { listed: true, listedIn: this.#created } : {};
  }

  /** `listedIn`: absent in leases of earlier versions. */
  begin(shard: number, isListed: boolean, listedIn = this.#created): void {
    if (isListed && listedIn === this.#created) this.#listed.add(shard);
    else if (!this.#listed.has(shard)) {
      this.#unlisted.add(shard);
      void this.#run();
    }
  }

  end(shard: number): void {
    this.#listed.delete(shard);
    this.#unlisted.delete(shard);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stop.abort();
  }

  async #readCreated(): Promise<number> {
    return (await this.#options.log.taskLists.extent()).created ?? 0;
  }

  /** While the log is away nothing is done. The next check does the work of this one. */
  #onCheckFailed(error: unknown): void {
    if (!(error instanceof LogUnavailable))
      this.#options.logger.error({ err: error }, 'the bucket of the task lists could not be checked');
  }

  async #check(): Promise<void> {
    const created = await this.#readCreated();
    if (created === this.#created || this.#stop.signal.aborted) return;
    this.#created = created;
    const shards = [...this.#listed, ...this.#unlisted];
    this.#listed.clear();
    for (const shard of shards) {
      // The revisions that the relay knows belong to the lost bucket.
      this.#options.tasks.begin(shard);
      this.#unlisted.add(shard);
    }
    this.#options.logger.warn({ count: shards.length }, 'the bucket of the task lists was created again: tasks are listed again');
    void this.#run();
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    const { signal } = this.#stop;
    // The shards that a relay takes in one round are read together.
    await sleepUnlessAborted(0, signal);
    for (let failures = 0; this.#unlisted.size > 0 && !signal.aborted; ) {
      const shards = new Set(this.#unlisted);
      const created = this.#created;
      try {
        const entered = await this.#enter(shards);
        if (created !== this.#created) continue;
        for (const shard of shards) if (this.#unlisted.delete(shard)) this.#listed.add(shard);
        failures = 0;
        if (entered > 0) this.#options.logger.info({ count: entered }, 'tasks were listed from their entries by id');
      } catch (error) {
        failures += 1;
        if (!signal.aborted) this.#options.logger.warn({ err: error }, 'tasks could not be listed from their entries by id');
        await sleepUnlessAborted(backoffMs(failures, RETRY_MS_BASE, RETRY_MS_MAX), signal);
      }
    }
    this.#isRunning = false;
  }

  /** Resolves with the number of tasks. */
  async #enter(shards: ReadonlySet<number>): Promise<number> {
    const { log, ended } = this.#options;
    const extent = await log.facts.extent();
    const lists = new Map<string, EndedTask[]>();
    const writes = new Set<Promise<void>>();
    let inMemory = 0;
    let entered = 0;
    const start = async (write: Promise<void>) => {
      const settled = write.finally(() => writes.delete(settled));
      settled.catch(() => {});
      writes.add(settled);
      if (writes.size >= WRITES_AT_ONCE_MAX) await Promise.race(writes);
    };
    const flush = async (prefix: string, tasks: EndedTask[]) => {
      lists.delete(prefix);
      inMemory -= tasks.length;
      await start(ended.store(prefix, tasks));
    };
    const reading = new AbortController();
    for await (const change of log.tasks.watch(AbortSignal.any([reading.signal, this.#stop.signal]))) {
      if (change.type === 'ready') break;
      const { key: taskId, value: entry } = change;
      if (entry === undefined || !shards.has(shardOf(taskId, log.layouts))) continue;
      if (!isTerminal(entry.state)) {
        entered += 1;
        await start(this.#create(taskId, entry));
      } else if (entry.seq === undefined || entry.seq >= extent.of(taskId).firstSeq) {
        entered += 1;
        const prefix = listPrefixOf(taskId, entry, log.layouts);
        const tasks = lists.get(prefix) ?? [];
        lists.set(prefix, tasks);
        tasks.push(endedTaskOf(taskId, entry));
        inMemory += 1;
        if (tasks.length >= ENDED_ADDED_MAX) await flush(prefix, tasks);
        else if (inMemory >= TASKS_IN_MEMORY_MAX) for (const [all, of] of [...lists]) await flush(all, of);
      }
    }
    reading.abort();
    for (const [prefix, tasks] of [...lists]) await flush(prefix, tasks);
    await Promise.all(writes);
    if (this.#stop.signal.aborted) throw new Error('the relay stops');
    return entered;
  }

  async #create(taskId: string, entry: TaskIndexEntry): Promise<void> {
    const { log, tasks } = this.#options;
    try {
      const revision = await log.taskLists.create(listKeyOf(taskId, entry, log.layouts), entry);
      tasks.apply(taskId, { entry, revision });
    } catch (error) {
      // This relay has written the entry in the meantime.
      if (!(error instanceof LogConflict)) throw error;
    }
  }
}
