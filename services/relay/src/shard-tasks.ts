import { isTerminal } from '@hopline/a2a';
import { shardOf } from '@hopline/events';
import {
  backoffMs,
  isTaskEntry,
  type Log,
  LogConflict,
  listKeyOf,
  parseListKey,
  type StoredFacts,
  shardEntriesFilter,
  sleepUnlessAborted,
} from '@hopline/log';
import { type Logger, taskLogger } from '@hopline/telemetry';
import type { EndedLists } from './ended-lists.ts';
import { type IndexWrite, type OpenTask, storeEntry } from './index-entry.ts';
import { changeOf, indexEntry } from './side-effects.ts';

/** Pause before entries that could not be read are read again. */
const RELOAD_MS_BASE = 200;
const RELOAD_MS_MAX = 5_000;
/** Time between two reads of a shard's entries, which find entries that no relay of the shard has written. */
const RECHECK_MS = 10 * 60_000;
/** Number of such reads between two removals of tasks whose facts are gone from the lists of a shard: once per hour. */
const READS_PER_REMOVAL = 6;
/** An entry without a fact is removed after this long. Its server ended before it stored the message. */
const UNSTORED_MS_MAX = 60 * 60_000;

type ShardTasksOptions = {
  log: Pick<Log, 'tasks' | 'taskLists' | 'facts' | 'layouts'>;
  ended: EndedLists;
  /** Epoch milliseconds. */
  now: () => number;
  logger: Logger;
  /** The entry of a task of an owned shard; undefined when the task has ended or the shard has another owner. */
  onChange: (taskId: string, task: OpenTask | undefined) => void;
  recheckMs?: number;
};

/**
 * The open tasks of the shards that this relay owns. They are read once when a shard begins; from then on only this relay writes them. So the work of
 * a relay depends only on its own tasks, not on the number of stored tasks or on what other relays write.
 */
export class ShardTasks {
  readonly #options: ShardTasksOptions;
  readonly #open = new Map<string, OpenTask>();
  /** The ids of these tasks by shard. A relay that stops releases hundreds of shards, and may have a hundred thousand open tasks. */
  readonly #openOf = new Map<number, Set<string>>();
  /** The owned shards whose open tasks have been read. */
  readonly #read = new Set<number>();
  /** The owned shards. A shard that is released and taken again has a new signal. */
  readonly #owned = new Map<number, AbortController>();

  constructor(options: ShardTasksOptions) {
    this.#options = options;
  }

  get open(): ReadonlyMap<string, OpenTask> {
    return this.#open;
  }

  /**
   * Whether the task may be open: false only if it is not, and all open tasks of its shard have been read. A task that begins is in the
   * memory of its shard until its entry is stored.
   */
  mayBeOpen(taskId: string, shard: number): boolean {
    return this.#open.has(taskId) || !this.#read.has(shard);
  }

  begin(shard: number): void {
    this.end(shard);
    const owned = new AbortController();
    this.#owned.set(shard, owned);
    void this.#follow(shard, owned.signal);
  }

  end(shard: number): void {
    this.#owned.get(shard)?.abort();
    if (!this.#owned.delete(shard)) return;
    this.#read.delete(shard);
    this.#options.ended.forget(shard);
    for (const taskId of this.#openOf.get(shard) ?? []) this.#drop(taskId);
    this.#openOf.delete(shard);
  }

  stop(): void {
    for (const owned of this.#owned.values()) owned.abort();
  }

  /** Writes the entry for the lists of its owner, unless a later one is stored. */
  async store(taskId: string, write: IndexWrite): Promise<void> {
    const { taskLists, tasks, layouts } = this.#options.log;
    const key = listKeyOf(taskId, write, layouts);
    const isSettled = async () => {
      // The entry by id is written after this one, so this one was stored, and has since moved to the ended tasks.
      const byId = isTerminal(write.state) ? (await tasks.get(taskId))?.value : undefined;
      return byId !== undefined && isTerminal(byId.state) && byId.generation >= write.generation;
    };
    const stored = await storeEntry(taskLists as Log['tasks'], key, write, this.#open.get(taskId), isSettled);
    if (stored !== undefined) this.apply(taskId, stored);
  }

  /** Writes an entry again, unchanged, because the bucket is about to remove it. A conflict means that there is a newer entry. */
  async rewrite(taskId: string, { entry, revision }: OpenTask): Promise<void> {
    const { taskLists, layouts } = this.#options.log;
    try {
      const written = await taskLists.update(listKeyOf(taskId, entry, layouts), entry, revision);
      this.apply(taskId, { entry, revision: written });
    } catch (error) {
      if (!(error instanceof LogConflict)) throw error;
    }
  }

  /**
   * Takes a task whose newest records the log has lost, while the index still shows them. If those records ended the task, its entry is no
   * longer among the open ones, although the task goes on. Without this call its work would never be looked for.
   */
  reopen(newest: StoredFacts): void {
    const { aggregate } = newest.record;
    if (isTerminal(aggregate.state) || this.#open.has(aggregate.taskId)) return;
    // A revision that no entry has, so that the next write reads the stored one.
    this.apply(aggregate.taskId, { entry: indexEntry(changeOf(newest), aggregate.at), revision: 0 });
  }

  /** Takes an entry that was read or written, unless a later one is known. */
  apply(taskId: string, task: OpenTask): void {
    const shard = this.#shardOf(taskId);
    if (!this.#owned.has(shard) || (this.#open.get(taskId)?.revision ?? 0) > task.revision) return;
    if (isTerminal(task.entry.state)) {
      this.#drop(taskId);
      this.#options.ended.add(taskId, task);
      return;
    }
    this.#open.set(taskId, task);
    const ofShard = this.#openOf.get(shard) ?? new Set();
    this.#openOf.set(shard, ofShard.add(taskId));
    this.#options.onChange(taskId, task);
  }

  #drop(taskId: string): void {
    this.#openOf.get(this.#shardOf(taskId))?.delete(taskId);
    if (this.#open.delete(taskId)) this.#options.onChange(taskId, undefined);
  }

  #shardOf(taskId: string): number {
    return shardOf(taskId, this.#options.log.layouts);
  }

  async #follow(shard: number, signal: AbortSignal): Promise<void> {
    const { ended, logger, recheckMs = RECHECK_MS } = this.#options;
    for (let failures = 0, reads = 0; !signal.aborted; ) {
      try {
        await this.#load(shard, signal);
        failures = 0;
        // Not together with the first one, because a relay that is starting reads the entries of all its shards.
        if (reads++ % READS_PER_REMOVAL === 1 && !signal.aborted) await ended.removeGone(shard);
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        logger.warn({ shard, err: error }, 'task entries could not be read');
      }
      const pauseMs = failures === 0 ? recheckMs : backoffMs(failures, RELOAD_MS_BASE, RELOAD_MS_MAX);
      await sleepUnlessAborted(pauseMs, signal);
    }
  }

  async #load(shard: number, signal: AbortSignal): Promise<void> {
    const { log, now } = this.#options;
    const doubtful: [string, OpenTask, string][] = [];
    for (const { key, value, revision } of await log.taskLists.match([shardEntriesFilter(shard)])) {
      const { taskId } = parseListKey(key);
      if (signal.aborted) return;
      if (taskId === undefined || !isTaskEntry(value)) continue;
      const task = { entry: value, revision };
      this.apply(taskId, task);
      if (value.generation === 0 && now() - value.at > UNSTORED_MS_MAX) doubtful.push([taskId, task, key]);
    }
    if (signal.aborted) return;
    this.#read.add(shard);
    for (const [taskId, task, key] of doubtful) if (!signal.aborted) await this.#verify(taskId, task, key);
  }

  /** Checks an entry that a server wrote and that the shard's relay should have replaced long ago. */
  async #verify(taskId: string, { revision }: OpenTask, key: string): Promise<void> {
    const { log, logger } = this.#options;
    const newest = await log.facts.last(taskId);
    if (newest !== undefined) return this.store(taskId, indexEntry(changeOf(newest), newest.record.aggregate.at));
    await log.taskLists.purge(key, revision);
    this.#drop(taskId);
    taskLogger(logger, taskId).debug('removed the entry of a task that was never stored');
  }
}
