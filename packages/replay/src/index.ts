export type { Checkpoint, RecordReplay, ReplayRange } from './replay-records.ts';
export { CheckpointMismatch, replayFacts, replayInputs, SHARDS_AT_ONCE_DEFAULT, taskIdsOf } from './replay-records.ts';
export type { StoredTask, UnreadableTask } from './stored-task.ts';
export { readStoredTask, readStoredTasks } from './stored-task.ts';
export type { DifferenceLevel, TaskVerdict, VerifyOptions } from './verify-task.ts';
export { verifyTask } from './verify-task.ts';
