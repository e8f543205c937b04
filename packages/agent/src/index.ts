export type { AgentSkill } from '@hopline/a2a';
export type { Agent, AgentEvent, Turn } from './agent.ts';
export { eventsOf, TASK_ENDED } from './agent.ts';
export { AgentLost } from './attempt-failed.ts';
export type { AgentDefinition, AgentTurn, DefinedAgent, SkillDefinition } from './define-agent.ts';
export { checkEvent, defineAgent } from './define-agent.ts';
export type { ArtifactSpec } from './event-constructors.ts';
export { artifact, data, done, failed, needsInput, notice } from './event-constructors.ts';
export {
  CANCEL_MS_MAX,
  CANCEL_TRY_MS_MAX,
  EVENTS_AT_ONCE_MAX,
  RETRIES_DEFAULT,
  RETRIES_MAX,
  STOP_MS_MAX,
  TURN_ARTIFACTS_MAX,
  TURN_EVENTS_MAX,
  TURN_TEXT_BYTES_MAX,
} from './limits.ts';
export { AgentMisuse } from './misuse.ts';
export { AbortableEvents, isEnd } from './pump-events.ts';
export { HEARTBEAT_INTERVAL_MS } from './register-agent.ts';
export type { CancelRequest } from './remote-run-cancels.ts';
export { RemoteRunCancels } from './remote-run-cancels.ts';
export { isRepetition } from './repetition.ts';
export type { RunTurnDeps } from './run-turn.ts';
export { runTurn } from './run-turn.ts';
export type { ServeAgentOptions } from './serve-agent.ts';
export { serveAgent } from './serve-agent.ts';
export { GrowingText } from './streamed-text.ts';
export type { TurnEnd, TurnOutcome } from './turn-end.ts';
export type { Loggable, TurnLog } from './turn-log.ts';
export { turnLog } from './turn-log.ts';
