export type { Checkpoint, RecordReplay, ReplayRange } from './replay-records.ts';
export { CheckpointMismatch, replayFacts, replayInputs, SHARDS_AT_ONCE_DEFAULT, taskIdsOf } from './replay-records.ts';
