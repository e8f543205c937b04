export type {
  AgentCommand,
  ClientCommand,
  Command,
  RejectionReason,
  TextRun,
} from './commands.ts';
export { REJECTION_REASONS } from './commands.ts';
export { AUTH_TIMEOUT, decide, INPUT_TIMEOUT, INPUT_UNREADABLE, INPUTS_LOST, WORK_LOST, WORKER_GONE } from './decide.ts';
export {
  INPUT_MALFORMED,
  isKnownProducer,
  isOfOtherAgent,
  producerAgent,
  ROOT_AGENT,
  rootProducer,
  SUPERVISOR,
} from './decide-agent.ts';
export { withDecidedConditions } from './decided-conditions.ts';
export type { Decision } from './decision.ts';
export { artifactIdOf, failTask } from './decision.ts';
export { evolve, onlyContinuesText } from './evolve.ts';
export {
  STEP_JSON_UNITS_MAX,
  STEP_NAME_UNITS_MAX,
  STEP_OUTCOME_BYTES_MAX,
  TURN_CALLS_MAX,
  TURN_LANES_BYTES_MAX,
  TURN_LANES_MAX,
  TURN_STEPS_MAX,
  TURNS_MAX,
} from './limits.ts';
export type { TaskView } from './project.ts';
export { project, projectRecord, TaskViewBuilder } from './project.ts';
export { TaskTimeline } from './timeline.ts';
export { allows, pathTo } from './transitions.ts';
