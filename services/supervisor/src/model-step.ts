import type { Step } from '@hopline/chat-model';
import type { AgentEntry } from '@hopline/log';
import { FINISH_TOOL } from './agent-tools.ts';

/** Calls of one step; what a model wants beyond is refused, and it is told. */
export const STEP_CALLS_MAX = 16;

/** A tool call of the model, and what became of it. */
export type ChosenCall = {
  /** The model's own id of it. */
  id: string;
  name: string;
  args: Record<string, unknown>;
} & (
  | {
      /** Id of the call to the agent; what is asked of it stands in `args.request`. */ call: string;
      agent: string;
      skill?: string;
    }
  /** Nothing was called: what the model is told instead. */
  | { refused: string }
  /** The model has nothing to add. */
  | { finish: true }
);

/** What the model read of a call before this step: the proof that it read the whole text (S2-11). */
export type Read = { call: string; sha256: string; units: number };

/** One step of the model as it stands in the log: all that a supervisor needs to go on without asking again. */
export type ModelStep = {
  /** Turn of the task it was said in. */
  turn: number;
  /** All it said, the plan in it. */
  text: string;
  /** Made for a model that told none. */
  plan?: string;
  calls: ChosenCall[];
  read: Read[];
};

/** What a recorded step said; undefined for a record that no model made. */
export function modelStepOf(said: unknown): ModelStep | undefined {
  const step = said as Partial<ModelStep> | null | undefined;
  return typeof step?.text === 'string' && Array.isArray(step.calls) ? (step as ModelStep) : undefined;
}

/**
 * Decides what a step's calls come to, with the agents that live now. It is decided once and recorded: another supervisor must not decide otherwise because an agent came or went meanwhile.
 * `callId`: id of the index-th call. `callsLeft`: calls the task may still make.
 */
export function chooseCalls(
  step: Step,
  agents: readonly AgentEntry[],
  callId: (index: number) => string,
  callsLeft: number,
): ChosenCall[] {
  let called = 0;
  return step.calls.map(({ id, name, args }): ChosenCall => {
    const own = { id, name, args };
    if (name === FINISH_TOOL) return { ...own, finish: true };
    const agent = agents.find(entry => entry.name === name);
    if (agent === undefined) return { ...own, refused: 'There is no agent of that name.' };
    const { request, skill } = args;
    if (typeof request !== 'string' || request === '') return { ...own, refused: 'The argument "request" must be a text.' };
    if (called >= Math.min(STEP_CALLS_MAX, callsLeft)) return { ...own, refused: 'Too many calls; this one was not made.' };
    called += 1;
    const chosen = { ...own, call: callId(called), agent: name };
    return typeof skill === 'string' && agent.skills.some(known => known.id === skill) ? { ...chosen, skill } : chosen;
  });
}
