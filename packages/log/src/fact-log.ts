import type { FactRecord, TraceCarrier } from '@hopline/events';

/** The facts of all tasks: the only truth a client is shown. Written by the owner of the shard alone. PROTOCOL.md section 4. */
export interface FactLog {
  /**
   * Stores a record of `record.aggregate.taskId` if the newest record of that task has log sequence `expected` (0: there is none) and resolves with its sequence.
   * A retry with the same id is idempotent. Rejects with LogConflict when somebody else wrote in between (nothing was stored), with LogUnavailable after `timeoutMs` (default 20 s).
   * One append in flight per task: the check is exact only then.
   */
  append(record: FactRecord, options: AppendOptions): Promise<{ seq: number }>;

  /**
   * The newest record of a task, read from the leader; undefined when there is none. `seq` is what the next append expects: that of the newest message of the
   * task's subject, also where somebody wrote a message there that is no record (then `record` is the one before it).
   */
  last(taskId: string): Promise<StoredFacts | undefined>;

  /** Records of a task from log sequence `from` (inclusive) up to the newest one at the time of the call, in order. Leaves no consumer behind. */
  read(taskId: string, from: number): AsyncIterable<StoredFacts>;

  /**
   * Records of a task after log sequence `after`, first those stored, then live ones as they come, each exactly once and in order: missed live messages are noticed and read again.
   * What retention has removed, or is no record, is passed over. Throws LogUnavailable when it cannot go on.
   * `after: 'new'` says that the task cannot have records yet, so nothing is read first. The subscription is live when the returned promise resolves. Ends when `signal` aborts.
   */
  follow(taskId: string, after: number | 'new', signal: AbortSignal): Promise<AsyncIterable<StoredFacts>>;
}

/** `id`: unique over all tasks, and per content: a retry says the same again. */
export type AppendOptions = { expected: number; id: string; trace?: TraceCarrier; timeoutMs?: number };

export type StoredFacts = {
  /** Log sequence. */
  seq: number;
  record: FactRecord;
  trace?: TraceCarrier;
};
