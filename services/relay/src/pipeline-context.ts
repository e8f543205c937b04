import type { CoalesceSettings } from '@hopline/coalesce';
import type { Fact, MessageInput, TaskAggregate, TraceCarrier } from '@hopline/events';
import type { FactLog } from '@hopline/log';
import type { RejectionReason } from '@hopline/task';
import type { InputKind, Outcome } from './input-ledger.ts';
import type { Chunk } from './task-text.ts';

/**
 * Facts that were just stored; or none, and an input whose side effects may not have happened before a takeover (a client's message, or what an agent said), or a task that was carried forward.
 * `startSeq` and `startStoredAt` as in its newest record.
 */
export type StoredStep = {
  facts: Fact[];
  aggregate: TaskAggregate;
  startSeq: number;
  startStoredAt: number;
  again?: { message?: MessageInput };
};

/** What the pipeline needs from its shard. */
export type PipelineContext = {
  facts: FactLog;
  coalesce: CoalesceSettings;
  /** Epoch milliseconds. */
  now: () => number;
  /** Unique per append of this relay's life: a retry of one append carries the same id, another owner never does. */
  appendId: (taskId: string) => string;
  /** Called after a record is stored; a returned promise holds back the shard's checkpoint until it resolves. */
  stored: (stored: StoredStep, trace: TraceCarrier) => Promise<void> | undefined;
  dropped: (reason: RejectionReason, count: number) => void;
  counted: (kind: InputKind, outcome: Outcome, count: number) => void;
  chunked: (chunk: Chunk, agent: string) => void;
  /** The pipeline cannot go on (conflict, log unavailable): the shard must start again from the log. */
  failed: (error: unknown) => void;
};
