export type { Agent, AgentEvent, AgentSkill, Turn } from './agent.ts';
export { TASK_ENDED } from './agent.ts';
export { BEAT_MS } from './announce.ts';
export { RETRIES_DEFAULT, RETRIES_MAX, STOP_MS_MAX, TURN_ARTIFACTS_MAX, TURN_EVENTS_MAX, TURN_TEXT_BYTES_MAX } from './limits.ts';
export type { RunTurnDeps, TurnOutcome } from './run-turn.ts';
export { HandedBack, runTurn } from './run-turn.ts';
export type { ServeAgentOptions } from './serve-agent.ts';
export { serveAgent } from './serve-agent.ts';
export type { TurnEnd } from './turn-inputs.ts';
