import type { InputRecord, RecordFault, TraceCarrier, Writer } from '@hopline/events';
import type { LogExtent, ReadStart } from './fact-log.ts';

/**
 * The inputs of all tasks, from clients, agents and relays. Durable and ordered per subject; retention by limits, with a short
 * age. A record is stored at most once per id within the duplicate window, whatever is retried. PROTOCOL.md section 3.
 */
export interface InputLog {
  /**
   * Stores one record and resolves with its raw sequence when the log has acknowledged it. Lost acks, no leader and reconnects are retried
   * with the same id within `timeoutMs` (default 20 s, longer than an election); then rejects with LogUnavailable, and the record may or
   * may not be stored. The caller is responsible for the order: await one append of a producer before starting the next, as InputWriter
   * does.
   */
  append(taskId: string, record: InputRecord, options: InputAppendOptions): Promise<{ seq: number; duplicate: boolean }>;

  /**
   * Records of one shard in stream order, from the first one at `from` or later. Payloads that are not input records are skipped;
   * `onRejected` is called for each. Ends when `signal` aborts; throws LogUnavailable when it cannot continue.
   */
  readShard(
    shard: number,
    from: number,
    signal: AbortSignal,
    onRejected?: (rejected: RejectedInput) => void,
  ): AsyncIterable<StoredInput>;

  /**
   * Records of a shard after sequence `after` that are stored but that `readShard` has not yielded, as far as its newest delivery shows;
   * undefined if there are none.
   */
  unread(shard: number, after: number): Unread | undefined;

  /**
   * Like `readShard`, but from `start` up to the newest record at the time of the call, in batches and without `trace`. Leaves no consumer
   * behind.
   */
  readStoredShard(shard: number, start: ReadStart): AsyncIterable<readonly StoredInput[]>;

  /** All stored inputs of a task at the time of the call, in order. For audits; relays read shards. */
  read(taskId: string): AsyncIterable<StoredInput>;

  /** The record at a raw sequence. Undefined if retention has removed it, or if it is not an input record of the task. */
  recordAt(taskId: string, seq: number): Promise<InputRecord | undefined>;

  /** Extent of the stored inputs of all tasks, read from the leaders. */
  extent(): Promise<LogExtent>;
}

/**
 * `id`: unique over all tasks. The log keeps the first record with an id within the duplicate window. `waitsForRoom`: if the buffer of this
 * process is full, the append waits for up to `timeoutMs` instead of rejecting at once.
 */
export type InputAppendOptions = { id: string; trace?: TraceCarrier; timeoutMs?: number; waitsForRoom?: true };

/**
 * `records`: their number. For shards that share a consumer only the sum is known, and each is assigned an equal share of it. The oldest
 * record was stored at `storedAt` (epoch milliseconds) or later.
 */
export type Unread = { records: number; storedAt: number };

/** A stored payload that is not an input record. It stays in the log until retention removes it. `trace`: see StoredInput. */
export type RejectedInput = { seq: number; taskId: string; fault: RecordFault; trace?: TraceCarrier };

export type StoredInput = {
  /** Raw sequence: position in the raw stream, over all tasks. */
  seq: number;
  taskId: string;
  record: InputRecord;
  /** The service that appended it, to the extent that the permissions of the NATS users distinguish services. */
  writer: Writer;
  /** Size of the payload. */
  bytes: number;
  /** Epoch milliseconds at which the log stored it. */
  storedAt: number;
  /** True if it was stored after the reading of its shard began. Present only in results of `readShard`. */
  isLive?: true;
  trace?: TraceCarrier;
};
