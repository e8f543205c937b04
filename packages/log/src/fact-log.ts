import type { Fact, FactRecord, Layouts, Owner, TraceCarrier } from '@hopline/events';

/** The facts of all tasks: the only source of what clients see. Only the owner of a shard writes them. PROTOCOL.md section 4. */
export interface FactLog {
  /**
   * Stores a record of `record.aggregate.taskId` if the newest record of that task has log sequence `expected` (0: there is none) and
   * resolves with its sequence and the bytes that it takes in the log, including headers. A retry with the same id is idempotent. Rejects
   * with LogConflict when another writer was first (nothing was stored), with LogUnavailable after `timeoutMs` (default 20 s). Keep at most
   * one append per task in flight; otherwise the check is not exact.
   */
  append(record: FactRecord, options: AppendOptions): Promise<{ seq: number; bytes: number }>;

  /**
   * The newest record of a task, read from the leader; undefined when there is none. The next append must expect `seq`: the sequence of the
   * newest message on the task's subject. If that message is not a record, `record` is the newest one before it. Rejects with LaterVersion
   * if the message is a record of a later version. `by`: for an earlier task of a conversation, the tasks that lead to it. The first is a
   * task that the reader works on, and each names the next one. A service that may not read all tasks must pass it, here and for later
   * reads of the task.
   */
  last(taskId: string, by?: readonly string[]): Promise<StoredFacts | undefined>;

  /**
   * The newest record of each task that has one, as `last` reads it. On servers since 2.11 one request for up to 1,024 tasks. Rejects with
   * LaterVersion if one of the records is of a later version.
   */
  lastOfEach(taskIds: readonly string[]): Promise<Map<string, StoredFacts>>;

  /**
   * Records of a task from log sequence `from` (inclusive) up to the newest one at the time of the call, in order. Leaves no consumer
   * behind. `owner`: the owner of the task, if known, so that reads of different tenants take turns. `upTo`: sequence of the newest record,
   * if the caller has just read it, which saves a request.
   */
  read(taskId: string, from: number, owner?: Owner, upTo?: number): AsyncIterable<StoredFacts>;

  /**
   * Records of a task after log sequence `after`: stored ones first, then live ones as they arrive, each exactly once and in order. Missed
   * live messages are detected and read from the log. Skips what retention has removed and payloads that are not records. Throws
   * LogUnavailable if it cannot continue, and HistoryLost if the log has lost records that were already yielded. The subscription is live
   * when the returned promise resolves. Ends when `signal` aborts. `owner`: see `read`.
   */
  follow(taskId: string, after: FollowStart, signal: AbortSignal, owner?: Owner): Promise<AsyncIterable<StoredFacts>>;

  /**
   * Facts of all tasks of one shard from `start` up to the newest record at the time of the call, in order. Yields batches, because an
   * `await` for each record would take as long as decoding it. Decodes only the facts of a record, because the aggregate is half of its
   * bytes. Payloads that are not records are skipped. Leaves no consumer behind.
   */
  readStoredShard(shard: number, start: ReadStart): AsyncIterable<readonly RecordFacts[]>;

  /** Extent of the stored facts of all tasks, read from the leaders. */
  extent(): Promise<LogExtent>;

  /**
   * Whether the log has lost a record that it acknowledged: it ends before that record, or has another one in its place. False if retention
   * may have removed the record. Reads from the leader.
   */
  isLost(mark: RecordMark): Promise<boolean>;
}

/** A stored record: its log sequence and the id of its append. */
export type RecordMark = { seq: number; id: string };

/**
 * Start of a follower: after a log sequence.
 * - `'new'`: the task cannot have records yet, so nothing is read first.
 * - `{ newest }`: the sequence of the task's newest record a moment ago, and its id if known. Nothing is read first in this case either. A
 *   record stored since then is read when a live record names it as its predecessor, or after NEWEST_CHECK_MS without a live record. With
 *   `skipsText` the follower does not receive live records that only continue text (`AppendOptions.continuesText`), and does not decode
 *   them. A record that it reads from the log is always received.
 */
export type FollowStart = number | 'new' | { newest: number; id?: string | undefined; skipsText?: boolean };

/** Start of a read: at a sequence (inclusive), or with the first record stored at or after a time in epoch milliseconds. */
export type ReadStart = { seq: number } | { sinceMs: number };

/**
 * Extent of a log. `firstSeq` is `lastSeq + 1` when nothing is left. `fill`: used share of `bytesMax`, 0 to 1; 0 without a limit, and then
 * `bytesMax` is absent. `leadership`: identifies the server that leads the stream, and the time at which it began to lead. While the value
 * stays the same, no acknowledged record can have been lost. Absent if the server does not report it.
 */
export type StreamExtent = {
  firstSeq: number;
  lastSeq: number;
  fill: number;
  bytesMax?: number;
  leadership?: string;
  /** When the stream was created, in epoch milliseconds. If it was lost and created again, the time differs. Absent for a LogExtent. */
  created?: number;
};

/**
 * Extent of the inputs or facts of all tasks. A log may have several stream groups, each with its own sequences, so a sequence of a task
 * must be compared with the extent of its group. The members of this type describe all groups together: the lowest and the highest stored
 * sequence, the fill of the fullest group, and the sum of their `bytesMax`.
 */
export type LogExtent = StreamExtent & {
  of(taskId: string): StreamExtent;
  ofShard(shard: number): StreamExtent;
};

/** Combines the extents of the stream groups, in their order. */
export function toLogExtent(groups: readonly StreamExtent[], layouts: Layouts): LogExtent {
  const stored = groups.filter(({ firstSeq, lastSeq }) => firstSeq <= lastSeq);
  const lastSeq = Math.max(...groups.map(extent => extent.lastSeq));
  const bounds = groups.map(({ bytesMax }) => bytesMax).filter(bytesMax => bytesMax !== undefined);
  const ofShard = (shard: number) => groups[layouts.groupOf(shard)]!;
  return {
    firstSeq: stored.length === 0 ? lastSeq + 1 : Math.min(...stored.map(({ firstSeq }) => firstSeq)),
    lastSeq,
    fill: Math.max(...groups.map(({ fill }) => fill)),
    ...(bounds.length > 0 && { bytesMax: bounds.reduce((sum, bytesMax) => sum + bytesMax, 0) }),
    of: taskId => ofShard(layouts.shardOf(taskId)),
    ofShard,
  };
}

/**
 * `id`: unique over all tasks. Equal ids mean equal content, because only a retry sends the same id again. `continuesText`: the record only
 * adds text to open artifacts (`onlyContinuesText` of packages/task), so followers with `skipsText` do not need it.
 */
export type AppendOptions = { expected: number; id: string; trace?: TraceCarrier; timeoutMs?: number; continuesText?: boolean };

export type StoredFacts = {
  /** Log sequence. */
  seq: number;
  record: FactRecord;
  /** Epoch milliseconds at which the log stored it. Absent for the newest record, and for followers if the server does not report it. */
  storedAt?: number;
  /** Bytes of the record without its headers. Set by `read` if this process reads the log itself. */
  bytes?: number;
  /** Id of the append. Absent for a live record, and when the record has none. */
  id?: string;
  /** Identity of the relay that stored it, taken from the id of the append. Absent if the id has another form. */
  relay?: string;
  trace?: TraceCarrier;
};

/** The facts of one record. */
export type RecordFacts = {
  /** Log sequence. */
  seq: number;
  taskId: string;
  /** Empty if the record copies earlier facts forward, or stores only an aggregate. */
  facts: readonly Fact[];
  /** Epoch milliseconds at which the log stored it. Absent when a read of the newest record of a task does not report it. */
  storedAt?: number;
  /**
   * Id of the append. In a batch of `readStoredShard` only the last record has it. It serves to check later whether the log has lost the
   * record.
   */
  id?: string;
};

export function recordFactsOf({ seq, record, storedAt }: StoredFacts): RecordFacts {
  const { facts, aggregate } = record;
  return { seq, taskId: aggregate.taskId, facts, ...(storedAt !== undefined && { storedAt }) };
}
