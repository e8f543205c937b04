import type { Layouts } from '@hopline/events';
import {
  type Log,
  type ReadStart,
  type RecordFacts,
  readTask,
  recordFactsOf,
  type StoredFacts,
  type StoredInput,
} from '@hopline/log';
import { mergeSources } from './merge-sources.ts';

/** Selects the records that a replay yields: those stored when it begins, of one task or of all tasks. */
export type ReplayRange = {
  /** Absent: all tasks. */
  taskId?: string;
  /** Only records stored at or after this time, in epoch milliseconds. */
  sinceMs?: number;
  /** Only records stored before this time, in epoch milliseconds. */
  untilMs?: number;
  /** Continues after the records of an earlier replay. */
  after?: Checkpoint;
  /** Only these shards, for one of several processes that share the work. Default: all. */
  shards?: readonly number[];
  /** Number of shards that are read concurrently; default SHARDS_AT_ONCE_DEFAULT. */
  shardsAtOnce?: number;
  /** Ends the replay after the record that was yielded last. */
  signal?: AbortSignal;
};

/** JSON with the sequence of each shard's newest yielded record. Store it together with what you derived from the records. */
export type Checkpoint = { v: 1; shards: number; seqs: Record<number, number> };

/** A replay that begins when it is iterated. */
export interface RecordReplay<T> extends AsyncIterable<T> {
  /** Checkpoint of the yielded records, including the current one or the current batch. */
  readonly checkpoint: Checkpoint;

  /** Yields the records in batches of one shard: faster if an await for each record takes as long as its processing. */
  batches(): AsyncIterable<readonly T[]>;
}

export const SHARDS_AT_ONCE_DEFAULT = 4;

/** The checkpoint does not belong to this log. */
export class CheckpointMismatch extends Error {
  override readonly name = 'CheckpointMismatch';
}

/**
 * Yields the facts of a range by record, each fact once. The order is kept within a task but not between tasks. Omits records without
 * facts, and repetitions of copied facts. If retention has removed the beginning of a task, a replay of all tasks yields the remaining
 * facts; a replay of only that task also yields its copied facts.
 */
export function replayFacts(log: Pick<Log, 'layouts' | 'facts'>, range: ReplayRange = {}): RecordReplay<RecordFacts> {
  const { taskId } = range;
  const recordsOf = async function* (start: ReadStart): AsyncGenerator<StoredFacts, void> {
    // Copies after a checkpoint only repeat facts that were already yielded.
    if (range.after !== undefined) return yield* log.facts.read(taskId!, 'seq' in start ? start.seq : 1);
    const newest = await log.facts.last(taskId!);
    if (newest !== undefined) yield* readTask(log.facts, newest);
  };
  const ofTask = async function* (start: ReadStart): AsyncGenerator<readonly RecordFacts[], void> {
    for await (const stored of recordsOf(start)) yield [recordFactsOf(stored)];
  };
  const source = (shard: number, start: ReadStart) =>
    taskId === undefined ? log.facts.readStoredShard(shard, start) : ofTask(start);
  return new ShardReplay(log.layouts, range, source, ({ facts }) => facts.length > 0);
}

/** Yields the input records of a range, like `replayFacts`. @public */
export function replayInputs(log: Pick<Log, 'layouts' | 'inputs'>, range: ReplayRange = {}): RecordReplay<StoredInput> {
  const { taskId } = range;
  const source = (shard: number, start: ReadStart) =>
    taskId === undefined ? log.inputs.readStoredShard(shard, start) : oneByOne(log.inputs.read(taskId));
  return new ShardReplay(log.layouts, range, source, () => true);
}

/** Ids of the tasks that have facts in the range, each once. Reads all facts of the range. */
export async function taskIdsOf(log: Pick<Log, 'layouts' | 'facts'>, range: ReplayRange = {}): Promise<string[]> {
  const ids = new Set<string>();
  for await (const records of replayFacts(log, range).batches()) for (const { taskId } of records) ids.add(taskId);
  return [...ids];
}

async function* oneByOne<T>(items: AsyncIterable<T>): AsyncGenerator<readonly T[], void> {
  for await (const item of items) yield [item];
}

type Stored = { seq: number; storedAt?: number };
type Source<T> = (shard: number, start: ReadStart) => AsyncIterable<readonly T[]>;

class ShardReplay<T extends Stored> implements RecordReplay<T> {
  readonly #layouts: Layouts;
  readonly #range: ReplayRange;
  readonly #source: Source<T>;
  readonly #isYielded: (stored: T) => boolean;
  readonly #seqs: Record<number, number>;

  constructor(layouts: Layouts, range: ReplayRange, source: Source<T>, isYielded: (stored: T) => boolean) {
    const { after } = range;
    if (after !== undefined && (after.v !== 1 || !layouts.hadShards(after.shards)))
      throw new CheckpointMismatch(
        `the checkpoint is of version ${after.v} and ${after.shards} shards, the log has ${layouts.shards}`,
      );
    this.#layouts = layouts;
    this.#range = range;
    this.#source = source;
    this.#isYielded = isYielded;
    this.#seqs = { ...after?.seqs };
  }

  get checkpoint(): Checkpoint {
    return { v: 1, shards: this.#layouts.shards, seqs: { ...this.#seqs } };
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    for await (const { shard, items } of this.#read()) {
      for (const item of items) {
        this.#seqs[shard] = item.seq;
        if (this.#isYielded(item)) yield item;
        if (this.#range.signal?.aborted) return;
      }
    }
  }

  async *batches(): AsyncGenerator<readonly T[], void> {
    for await (const { shard, items } of this.#read()) {
      const last = items.at(-1);
      if (last === undefined) continue;
      this.#seqs[shard] = last.seq;
      const yielded = items.every(this.#isYielded) ? items : items.filter(this.#isYielded);
      if (yielded.length > 0) yield yielded;
      if (this.#range.signal?.aborted) return;
    }
  }

  async *#read(): AsyncGenerator<{ shard: number; items: readonly T[] }, void> {
    const { taskId, signal, shardsAtOnce = SHARDS_AT_ONCE_DEFAULT } = this.#range;
    const all = Array.from({ length: this.#layouts.shards }, (_, shard) => shard);
    const shards = taskId === undefined ? (this.#range.shards ?? all) : [this.#layouts.shardOf(taskId)];
    const sources = shards.map(shard => () => this.#ofShard(shard));
    for await (const { source, items } of mergeSources(sources, shardsAtOnce, signal)) yield { shard: shards[source]!, items };
  }

  async *#ofShard(shard: number): AsyncGenerator<readonly T[], void> {
    const { sinceMs = 0, untilMs = Number.POSITIVE_INFINITY } = this.#range;
    const firstSeq = (this.#seqs[shard] ?? 0) + 1;
    const start: ReadStart = firstSeq > 1 || this.#range.sinceMs === undefined ? { seq: firstSeq } : { sinceMs };
    const isWithin = ({ seq, storedAt = 0 }: T) => seq >= firstSeq && storedAt >= sinceMs;
    for await (const items of this.#source(shard, start)) {
      const end = items.findIndex(({ storedAt = 0 }) => storedAt >= untilMs);
      const before = end < 0 ? items : items.slice(0, end);
      yield before.every(isWithin) ? before : before.filter(isWithin);
      if (end >= 0) return;
    }
  }
}
