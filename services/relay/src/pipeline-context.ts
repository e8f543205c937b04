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
  /** As in the task's newest record. */
  startSeq: number;
  startStoredAt: number;
  /** Bytes that the task's records take in the log, including the newest. */
  storedBytes: number;
  /** Labels of the task's owner; absent from a step that stored no record. */
  party?: PartyLabels;
  /**
   * Set when the side effects may have been lost with the previous owner. `message` and `calls` are in the input that is read again;
   * `storedAt`: epoch milliseconds at which the log stored that input.
   */
  replay?: { message?: MessageInput; calls?: readonly CallInput[]; storedAt?: number };
};

/** Dependencies of a pipeline on its shard. */
export type PipelineContext = {
  facts: FactLog;
  /**
   * Log sequence of a record of the task, as the task index knows it: 0 when the entry does not name it, undefined when no facts of the
   * task were stored. If the log has none of them, the task has expired.
   */
  indexedSeq: (taskId: string) => Promise<number | undefined>;
  /**
   * The log may have lost records of the shard. The next event of a task that has folded inputs only up to this raw sequence could replace one
   * that clients have received.
   */
  leapTo?: number | undefined;
  coalesce: CoalesceSettings;
  /** Bytes of records of one task. A task that reaches the limit fails. */
  taskBytesMax: number;
  /** UTF-16 units of the facts of one part of a copy as JSON; default PART_UNITS_MAX. */
  copyPartUnitsMax?: number | undefined;
  layouts: () => Layouts;
  /** When and why this process became the owner of the shard. Another owner stored older facts. */
  owned: Takeover;
  /** Monotonic milliseconds, for holds: text must not wait for a clock that was set back. */
  now: () => number;
  /**
   * Epoch milliseconds, for the times of facts: they must be right even after the machine was suspended. If this clock is set back, the
   * decider keeps the time of the previous fact.
   */
  wallNow: () => number;
  /** Returns a unique id for each append of this relay process. A retry of the append reuses it; another owner never does. */
  appendId: (taskId: string) => string;
  /**
   * Called after a record is stored. A returned promise holds back the shard's checkpoint until it resolves. `isStopped`: the pipeline no
   * longer holds the task, and leaves the remaining work to the next owner.
   */
  applySideEffects: (step: StoredChange, trace: TraceCarrier, isStopped: () => boolean) => Promise<void> | undefined;
  metrics: HopMetrics;
  logger: Logger;
  /** Called when a record was skipped, or when it could not be applied, which fails its task. */
  onRejectedRecord: (rejected: RejectedRecord) => void;
  /** Called when the log has acknowledged a record. */
  onAppended: (stored: RecordMark) => void;
  /** Counts a stored record of a task for its owner. */
  countStored: (taskId: string, owner: Owner, record: { seq: number; bytes: number }) => void;
  /** Called when the pipeline has stopped after a conflict or because the log is unavailable: the shard must restart from the log. */
  onFailure: (error: unknown) => void;
};
