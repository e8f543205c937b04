export type { Faults } from './faults.ts';
export { parseFaults } from './faults.ts';
export type { MatchRule, Recording } from './recording.ts';
export { readRecordings } from './recording.ts';
export type { ReplayServer, ReplayServerOptions } from './replay-server.ts';
export { createReplayServer } from './replay-server.ts';
