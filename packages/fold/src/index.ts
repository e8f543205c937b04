export type { QueuedCommand } from './append-queue.ts';
export { type BatchDecision, decideBatch, NOT_ENCODABLE, TASK_TOO_LARGE, TOO_LARGE, withMark } from './decide-batch.ts';
export type { InputKind, InputOutcome } from './input-ledger.ts';
export { InputLedger } from './input-ledger.ts';
export { alreadyFolded, OrdinalDeduplicator, withoutStaleOrdinals } from './ordinal-deduplicator.ts';
export { TaskInputs } from './task-inputs.ts';
