import type { InputRecord, TraceCarrier } from '@hopline/events';

/**
 * The inputs of all tasks: what clients ask and agents say. Durable and ordered per subject; limits retention, short age.
 * A record is stored at most once per id within the duplicate window, whatever is retried (PROTOCOL.md section 3).
 */
export interface InputLog {
  /**
   * Stores one record and resolves with its raw sequence when the log has acknowledged it. Lost acks, no leader and reconnects are retried with
   * the same id within `timeoutMs` (default 20 s, longer than an election); then rejects with LogUnavailable, and the record may or may not be stored.
   * Order is the caller's: wait for one `say` of a producer before the next (InputWriter does).
   */
  append(taskId: string, record: InputRecord, options: InputAppendOptions): Promise<{ seq: number; duplicate: boolean }>;

  /** Records of one shard in stream order, beginning with the first one stored at `from` or later. Ends when `signal` aborts; throws LogUnavailable when it cannot go on. */
  readShard(shard: number, from: number, signal: AbortSignal): AsyncIterable<StoredInput>;

  /** What the log still has of a task's inputs at the time of the call, in order. For audits: a relay reads shards. */
  read(taskId: string): AsyncIterable<StoredInput>;
}

/** `id`: unique over all tasks; the log keeps the first record of an id within the duplicate window. */
export type InputAppendOptions = { id: string; trace?: TraceCarrier; timeoutMs?: number };

export type StoredInput = {
  /** Raw sequence: position in the raw stream, over all tasks. */
  seq: number;
  taskId: string;
  record: InputRecord;
  /** Size of the payload, bytes. */
  bytes: number;
  /** Epoch milliseconds at which the log stored it. */
  storedAt: number;
  trace?: TraceCarrier;
};
