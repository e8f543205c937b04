export type { AgentSkill } from '@hopline/a2a';
export { ModelError } from '@hopline/chat-model/model-error';
export type { StepOutcome, TokenUsage } from '@hopline/events';
export type { WorkGate } from '@hopline/log';
export { AbortableEvents } from './abortable-events.ts';
export type { Agent, AgentEvent, Approval, BegunStep, Turn, TurnSteps } from './agent.ts';
export { eventsOf, TASK_ENDED } from './agent.ts';
export type { AsJson } from './as-json.ts';
export { AgentLost } from './attempt-failed.ts';
export type { AgentDefinition, AgentTurn, DefinedAgent, SkillDefinition } from './define-agent.ts';
export { checkEvent, defineAgent } from './define-agent.ts';
export type { Delegated } from './delegated.ts';
export type { ApprovalSpec, ArtifactSpec } from './event-constructors.ts';
export { artifact, data, done, failed, needsApproval, needsInput, notice } from './event-constructors.ts';
export { GrowingText } from './growing-text.ts';
export {
  AGENT_STEPS_BYTES_MAX,
  AGENT_STEPS_MAX,
  CANCEL_MS_MAX,
  CANCEL_TRY_MS_MAX,
  EVENTS_AT_ONCE_MAX,
  MODEL_STEPS_DEFAULT,
  MODEL_STEPS_MAX,
  MODEL_TOOL_RESULT_UNITS_MAX,
  MODEL_TOOLS_MAX,
  RETRIES_DEFAULT,
  RETRIES_MAX,
  RUN_RETRIES_MAX,
  STOP_MS_MAX,
  TOOL_ARGUMENTS_BYTES_MAX,
  TOOL_RESULT_BYTES_MAX,
  TURN_ARTIFACTS_MAX,
  TURN_EVENTS_MAX,
  TURN_TEXT_BYTES_MAX,
  TURN_TOOL_BYTES_MAX,
} from './limits.ts';
export { AgentMisuse } from './misuse.ts';
export type { ModelMessage, ModelOptions, ModelTool } from './model.ts';
export { model } from './model.ts';
export type { ModelAnswer, ModelLoopOptions, ModelTools } from './model-loop.ts';
export { cutResult, runModel } from './model-loop.ts';
export { conversationOf, pausedModelOf, pauseModel } from './paused-model.ts';
export { isEnd } from './pump-events.ts';
export { AGENT_HEARTBEAT_MS } from './register-agent.ts';
export type { CancelRequest } from './remote-run-cancels.ts';
export { RemoteRunCancels } from './remote-run-cancels.ts';
export { isRepetition } from './repetition.ts';
export type { RetryOptions } from './retried.ts';
export type { RunTurnDeps } from './run-turn.ts';
export { runTurn } from './run-turn.ts';
export type { ServeAgentOptions } from './serve-agent.ts';
export { serveAgent } from './serve-agent.ts';
export type { StepContext } from './step.ts';
export { step } from './step.ts';
export type { TurnRequest } from './this-turn.ts';
export type { ToolContext, ToolOptions } from './tool.ts';
export { ToolError, tool } from './tool.ts';
export { CUT_KEY } from './tool-values.ts';
export type { TurnEnd, TurnOutcome } from './turn-end.ts';
export type { Loggable, TurnLog } from './turn-log.ts';
export { turnLog } from './turn-log.ts';
