export { AppendQueue, type CommandQueue, type QueuedCommand } from './append-queue.ts';
export { attemptLaneKey, CoalescedText, isEarlierAttempt } from './coalesced-text.ts';
export { type BatchDecision, decideBatch, NOT_ENCODABLE, TASK_TOO_LARGE, TOO_LARGE, withMark } from './decide-batch.ts';
export type { InputOutcome } from './input-ledger.ts';
export { InputLedger } from './input-ledger.ts';
export { type FoldedText, withoutStaleOrdinals } from './ordinal-deduplicator.ts';
export { TaskInputs } from './task-inputs.ts';
export type { TextCutter } from './text-cutter.ts';
