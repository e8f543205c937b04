import type { Layouts } from '@hopline/events';
import {
  fromStart,
  type Log,
  type LogExtent,
  type ReadStart,
  type RecordFacts,
  type RecordMark,
  recordFactsOf,
  type StoredFacts,
  type StoredInput,
  startSeqOf,
} from '@hopline/log';
import { withCopies } from './copied-facts.ts';
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

/**
 * JSON with the sequence of each shard's newest yielded record and, at the end of a batch of facts, the id of its append. Store it together with what
 * you derived from the records.
 */
export type Checkpoint = { v: 1; shards: number; seqs: Record<number, number>; ids?: Record<number, string> };

/** A replay that begins when it is iterated. */
export interface RecordReplay<T> extends AsyncIterable<T> {
  /** Checkpoint after the yielded records, including the current record or batch. */
  readonly checkpoint: Checkpoint;

  /** Yields the records in batches of one shard, which is faster if an await for each record takes as long as processing it. */
  batches(): AsyncIterable<readonly T[]>;
}

export const SHARDS_AT_ONCE_DEFAULT = 4;

/** The checkpoint does not belong to this log, or the log has lost records up to it. */
export class CheckpointMismatch extends Error {
  override readonly name = 'CheckpointMismatch';
}

/**
 * Yields the facts of a range by record, each fact once. The order is kept within a task but not between tasks. Omits records without
 * facts, and repetitions of copied facts. If retention has removed the beginning of a task, a replay yields the remaining facts. It yields
 * the facts of a copy if it replays only that task, or if it starts at the beginning of the log and nothing else of the task precedes the
 * copy.
 */
export function replayFacts(log: Pick<Log, 'layouts' | 'facts'>, range: ReplayRange = {}): RecordReplay<RecordFacts> {
  const { taskId } = range;
  const recordsOf = async function* (start: ReadStart): AsyncGenerator<StoredFacts, void> {
    // Copies after a checkpoint only repeat facts that were already yielded.
    if (range.after !== undefined) return yield* log.facts.read(taskId!, 'seq' in start ? start.seq : 1);
    const newest = await log.facts.last(taskId!);
    // Does not use readTask, because the newest record has no storage time if it was read by itself.
    if (newest !== undefined) yield* fromStart(log.facts.read(taskId!, startSeqOf(newest), undefined, newest.seq));
  };
  const ofTask = async function* (start: ReadStart): AsyncGenerator<readonly RecordFacts[], void> {
    for await (const stored of recordsOf(start)) yield [recordFactsOf(stored)];
  };
  const source = (shard: number, start: ReadStart) => {
    if (taskId !== undefined) return ofTask(start);
    const records = log.facts.readStoredShard(shard, start);
    return range.after === undefined && range.sinceMs === undefined ? withCopies(log.facts, records) : records;
  };
  const { facts } = log;
  return new ShardReplay(log.layouts, range, {
    source,
    extent: () => facts.extent(),
    isLost: mark => facts.isLost(mark),
    isYielded: record => record.facts.length > 0,
  });
}

/** Yields the input records of a range, like `replayFacts`. @public */
export function replayInputs(log: Pick<Log, 'layouts' | 'inputs'>, range: ReplayRange = {}): RecordReplay<StoredInput> {
  const { taskId } = range;
  const source = (shard: number, start: ReadStart) =>
    taskId === undefined ? log.inputs.readStoredShard(shard, start) : oneByOne(log.inputs.read(taskId));
  return new ShardReplay(log.layouts, range, {
    source,
    extent: () => log.inputs.extent(),
    isLost: async () => false,
    isYielded: () => true,
  });
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

type Stored = { seq: number; storedAt?: number; id?: string };
type Records<T> = {
  source: (shard: number, start: ReadStart) => AsyncIterable<readonly T[]>;
  extent: () => Promise<LogExtent>;
  isLost: (mark: RecordMark) => Promise<boolean>;
  isYielded: (stored: T) => boolean;
};

class ShardReplay<T extends Stored> implements RecordReplay<T> {
  readonly #layouts: Layouts;
  readonly #range: ReplayRange;
  readonly #records: Records<T>;
  readonly #seqs: Record<number, number>;
  readonly #ids: Record<number, string>;

  constructor(layouts: Layouts, range: ReplayRange, records: Records<T>) {
    const { after } = range;
    if (after !== undefined && (after.v !== 1 || !layouts.hadShards(after.shards)))
      throw new CheckpointMismatch(
        `the checkpoint is of version ${after.v} and ${after.shards} shards, the log has ${layouts.shards}`,
      );
    this.#layouts = layouts;
    this.#range = range;
    this.#records = records;
    this.#seqs = { ...after?.seqs };
    this.#ids = { ...after?.ids };
  }

  get checkpoint(): Checkpoint {
    return { v: 1, shards: this.#layouts.shards, seqs: { ...this.#seqs }, ids: { ...this.#ids } };
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    for await (const { shard, items } of this.#read()) {
      for (const item of items) {
        this.#pass(shard, item);
        if (this.#records.isYielded(item)) yield item;
        if (this.#range.signal?.aborted) return;
      }
    }
  }

  async *batches(): AsyncGenerator<readonly T[], void> {
    const { isYielded } = this.#records;
    for await (const { shard, items } of this.#read()) {
      const last = items.at(-1);
      if (last === undefined) continue;
      this.#pass(shard, last);
      const yielded = items.every(isYielded) ? items : items.filter(isYielded);
      if (yielded.length > 0) yield yielded;
      if (this.#range.signal?.aborted) return;
    }
  }

  async *#read(): AsyncGenerator<{ shard: number; items: readonly T[] }, void> {
    const { taskId, after, signal, shardsAtOnce = SHARDS_AT_ONCE_DEFAULT } = this.#range;
    if (after !== undefined) await this.#requireStored(after);
    const all = Array.from({ length: this.#layouts.shards }, (_, shard) => shard);
    const shards = taskId === undefined ? (this.#range.shards ?? all) : [this.#layouts.shardOf(taskId)];
    const sources = shards.map(shard => () => this.#ofShard(shard));
    for await (const { source, items } of mergeSources(sources, shardsAtOnce, signal)) yield { shard: shards[source]!, items };
  }

  #pass(shard: number, { seq, id }: T): void {
    this.#seqs[shard] = seq;
    if (id === undefined) delete this.#ids[shard];
    else this.#ids[shard] = id;
  }

  /** A log that has lost records would yield nothing until it has passed the checkpoint, or other records in their place. */
  async #requireStored({ seqs, ids = {} }: Checkpoint): Promise<void> {
    const extent = await this.#records.extent();
    const isStored = async ([shard, seq]: [string, number]) => {
      const id = ids[Number(shard)];
      return seq <= extent.ofShard(Number(shard)).lastSeq && (id === undefined || !(await this.#records.isLost({ seq, id })));
    };
    const stored = await Promise.all(Object.entries(seqs).map(isStored));
    if (stored.includes(false))
      throw new CheckpointMismatch('the log has lost records of the checkpoint, or it is another log: replay from the beginning');
  }

  async *#ofShard(shard: number): AsyncGenerator<readonly T[], void> {
    const { sinceMs = 0, untilMs = Number.POSITIVE_INFINITY } = this.#range;
    const firstSeq = (this.#seqs[shard] ?? 0) + 1;
    const start: ReadStart = firstSeq > 1 || this.#range.sinceMs === undefined ? { seq: firstSeq } : { sinceMs };
    const isWithin = ({ seq, storedAt = 0 }: T) => seq >= firstSeq && storedAt >= sinceMs;
    for await (const items of this.#records.source(shard, start)) {
      const end = items.findIndex(({ storedAt = 0 }) => storedAt >= untilMs);
      const before = end < 0 ? items : items.slice(0, end);
      yield before.every(isWithin) ? before : before.filter(isWithin);
      if (end >= 0) return;
    }
  }
}
