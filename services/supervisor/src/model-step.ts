import { isDeeperThan } from '@hopline/a2a';
import type { Step } from '@hopline/chat-model';
import type { TokenUsage } from '@hopline/events';
import type { AgentRegistration } from '@hopline/log';
import { TURN_CALLS_MAX } from '@hopline/task';
import { FINISH_TOOL } from './agent-tools.ts';

/** Maximum calls of one step. The model gets an error for each further call. */
export const STEP_AGENT_CALLS_MAX = 16;

/**
 * Maximum levels of JSON in the arguments of one call. Relays skip a record that nests deeper than INPUT_DEPTH_MAX, and the turn would then
 * wait for its step forever. The step adds four levels around the arguments.
 */
export const ARGS_DEPTH_MAX = 32;

/** A tool call of the model, and its outcome. */
export type ChosenCall = {
  /** The id that the model gave the call. */
  id: string;
  name: string;
  args: Record<string, unknown>;
} & (
  | {
      /** Id of the call to the agent; the request is `args.request`. */ call: string;
      agent: string;
      skill?: string;
    }
  /** The call was refused. The model reads this error instead of a result. */
  | { refused: string }
  /** The model ends the conversation, because it has nothing to add. */
  | { finish: true }
);

/** A call whose result the model had read before this step. The digest proves that it read the whole text (S2-11). */
export type Read = { call: string; sha256: string; units: number };

/** One step of the model as recorded in the log: a supervisor that takes over continues from it without another request. */
export type ModelStep = {
  /** Turn of the task. */
  turn: number;
  /** All text of the step, with the plan. */
  text: string;
  /** The plan that the supervisor made because the model wrote none. */
  plan?: string;
  calls: ChosenCall[];
  read: Read[];
  /** Tokens of the request, if the provider reports them. */
  usage?: TokenUsage;
};

/** If the model read only that there were too many calls, it would make the same calls again in each of its remaining steps. */
const NO_CALLS_LEFT = `This call was not made: one message of the user allows ${TURN_CALLS_MAX} calls, and no further ones. Answer with the results so far.`;
const TOO_MANY_AT_ONCE = `This call was not made: one step allows ${STEP_AGENT_CALLS_MAX} calls. Make it again in your next step.`;

/** A recorded payload as a step of a model; undefined for other records. */
export function modelStepOf(payload: unknown): ModelStep | undefined {
  const step = payload as Partial<ModelStep> | null | undefined;
  return typeof step?.text === 'string' && Array.isArray(step.calls) ? (step as ModelStep) : undefined;
}

/**
 * Resolves a step's calls to the agents that are live now. The result is recorded, so that a takeover makes the same calls even if agents
 * have come or gone. `callId`: returns the id of a call by its index. `callsLeft`: how many calls the task may still make.
 */
export function chooseCalls(
  step: Step,
  agents: readonly AgentRegistration[],
  callId: (index: number) => string,
  callsLeft: number,
): ChosenCall[] {
  let called = 0;
  return step.calls.map(({ id, name, args }): ChosenCall => {
    const isTooDeep = isDeeperThan(args, ARGS_DEPTH_MAX);
    const shown = { id, name, args: isTooDeep ? {} : args };
    if (name === FINISH_TOOL) return { ...shown, finish: true };
    const agent = agents.find(entry => entry.name === name);
    if (agent === undefined) return { ...shown, refused: 'No agent has that name.' };
    if (isTooDeep) return { ...shown, refused: 'The arguments are nested too deeply.' };
    const { request, skill } = args;
    if (typeof request !== 'string' || request === '')
      return { ...shown, refused: 'The argument "request" must be a non-empty string.' };
    if (called >= callsLeft) return { ...shown, refused: NO_CALLS_LEFT };
    if (called >= STEP_AGENT_CALLS_MAX) return { ...shown, refused: TOO_MANY_AT_ONCE };
    called += 1;
    const chosen = { ...shown, call: callId(called), agent: name };
    return typeof skill === 'string' && agent.skills.some(known => known.id === skill) ? { ...chosen, skill } : chosen;
  });
}
