import type { CoalesceSettings } from '@hopline/coalesce';
import type { CallInput, Fact, Layouts, MessageInput, Owner, Takeover, TaskAggregate, TraceCarrier } from '@hopline/events';
import type { FactLog, RecordMark } from '@hopline/log';
import type { HopMetrics, Logger, PartyLabels } from '@hopline/telemetry';
import type { RejectedRecord } from './rejected-records.ts';

/** A task after an append, or after an input that was already folded. Side effects follow from it. */
export type StoredChange = {
  /** Empty for an input that was already folded. */
  facts: readonly Fact[];
  aggregate: TaskAggregate;
  /** Log sequence of the newest record. */
  seq: number;
  /** See the task's newest record. */
  startSeq: number;
  startStoredAt: number;
  /** Bytes that the task's records take in the log, including the newest. */
  storedBytes: number;
  /** Labels of the task's owner; absent if the step stored no record. */
  party?: PartyLabels;
  /**
   * Set when the side effects may have been lost with the previous owner. `message` and `calls` come from the input that is read again.
   * `storedAt`: when the log stored that input, in epoch milliseconds.
   */
  replay?: { message?: MessageInput; calls?: readonly CallInput[]; storedAt?: number };
};

/** Dependencies of a pipeline on its shard. */
export type PipelineContext = {
  facts: FactLog;
  /**
   * Log sequence of a record of the task according to the task index: 0 if the entry does not name it, undefined if no facts of the task
   * were stored. If the log no longer has any of its facts, the task has expired.
   */
  indexedSeq: (taskId: string) => Promise<number | undefined>;
  /**
   * The log may have lost records of the shard. If a task has folded inputs only up to this raw sequence, its next event could replace one
   * that clients have received.
   */
  leapTo?: number | undefined;
  coalesce: CoalesceSettings;
  /** Bytes of records of one task. A task that reaches the limit fails. */
  taskBytesMax: number;
  /** UTF-16 units of the facts of one part of a copy as JSON; default PART_UNITS_MAX. */
  copyPartUnitsMax?: number | undefined;
  layouts: () => Layouts;
  /** When and why this process became the owner of the shard. Older facts were stored by another owner. */
  owned: Takeover;
  /** Monotonic milliseconds, for holds, because text must not wait for a clock that was set back. */
  now: () => number;
  /**
   * Epoch milliseconds, for the times of facts, which must be right even after the machine was suspended. If this clock is set back, the
   * decider keeps the time of the previous fact.
   */
  wallNow: () => number;
  /** Returns a unique id for each append of this relay process. A retry of the append reuses it; another owner never does. */
  appendId: (taskId: string) => string;
  /**
   * Called after a record is stored. A returned promise holds back the shard's checkpoint until it resolves. `isStopped`: the pipeline no
   * longer holds the task and leaves the remaining work to the next owner.
   */
  applySideEffects: (step: StoredChange, trace: TraceCarrier, isStopped: () => boolean) => Promise<void> | undefined;
  metrics: HopMetrics;
  logger: Logger;
  /** Called when a record was skipped, or when it could not be applied, which makes its task fail. */
  onRejectedRecord: (rejected: RejectedRecord) => void;
  /** Called when the log has acknowledged a record. */
  onAppended: (stored: RecordMark) => void;
  /** Counts a stored record of a task for its owner. */
  countStored: (taskId: string, owner: Owner, record: { seq: number; bytes: number }) => void;
  /**
   * Called when the pipeline has stopped, after a conflict or because the log is unavailable. The shard must then be restarted from the
   * log.
   */
  onFailure: (error: unknown) => void;
};
