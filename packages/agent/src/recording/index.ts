export type { Pace } from './pace.ts';
export { PACE_MAX } from './pace.ts';
export { RecordingError } from './recording.ts';
export type { RecordingOptions } from './recording-agent.ts';
export { createRecordingAgent } from './recording-agent.ts';
