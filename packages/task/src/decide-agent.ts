import { isTerminal } from '@hopline/a2a';
import type {
  ArtifactInput,
  CallInput,
  EndedInput,
  OpenInput,
  Producer,
  StatusInput,
  StepInput,
  TaskControl,
} from '@hopline/events';
import type { AgentItem } from './commands.ts';
import { refusal } from './decide-run.ts';
import { artifactFact, changeState, closeLanes, type Decision, drop, Facts, failTask } from './decision.ts';
import { CALLS_MAX, LANES_MAX, STEP_UNITS_MAX, STEPS_MAX } from './limits.ts';
import { pathTo } from './transitions.ts';

/** Producer id of an agent that was addressed directly; one that a supervisor called has its call id. */
export const ROOT_AGENT = 'agent';
export const SUPERVISOR = 'supervisor';

/** What the supervisor or an agent says, tokens excepted. */
export function decideAgent(control: TaskControl | undefined, item: AgentItem, at: number): Decision {
  if (control === undefined) return drop('unknown task');
  if (isTerminal(control.state)) return drop('terminal');
  const { from, input } = item;
  if (from.turn !== control.turn) return drop('stale turn');
  const known = control.producers[from.id];
  if (known !== undefined && from.attempt < known.attempt) return drop('stale attempt');
  if (isOver(control, from)) return drop('ended call');
  switch (input.kind) {
    case 'open':
      return open(control, from, input, at);
    case 'close':
      return close(control, from, input.lane, at);
    case 'artifact':
      return artifact(control, from, input, at);
    case 'status':
      return status(control, from, input, at);
    case 'call':
      return call(control, from, input, at);
    case 'ended':
      return ended(control, from, input, at);
    case 'step':
      return step(control, from, input, at);
  }
}

/** The supervisor may have given up an agent that still speaks. */
function isOver(control: TaskControl, { id }: Producer): boolean {
  const state = control.calls[id]?.state;
  return state !== undefined && isTerminal(state);
}

/** The producer that speaks for the task as a whole. */
export function rootProducer(control: Pick<TaskControl, 'role'>): string {
  return control.role === 'supervisor' ? SUPERVISOR : ROOT_AGENT;
}

function open(control: TaskControl, from: Producer, input: OpenInput, at: number): Decision {
  const lane = control.lanes[input.lane];
  if (lane !== undefined && lane.producer !== from.id) return drop('foreign lane');
  if (lane?.phase === 'closed') return drop('closed lane');
  if (lane !== undefined && lane.attempt > from.attempt) return drop('stale attempt');
  if (lane === undefined && Object.keys(control.lanes).length >= LANES_MAX) {
    return failTask(control, `more than ${LANES_MAX} streamed artifacts`, at);
  }
  const { artifact, source } = input;
  const opened = { at, lane: input.lane, producer: from.id, attempt: from.attempt, artifact, ...(source && { source }) };
  return { facts: [{ kind: 'lane.opened', ...opened }] };
}

function close(control: TaskControl, from: Producer, name: string, at: number): Decision {
  const refused = refusal(control.lanes[name], from);
  if (refused !== undefined) return drop(refused);
  const facts = new Facts(control);
  closeLanes(facts, at, (_lane, lane) => lane === name);
  return facts.decision();
}

function artifact(control: TaskControl, from: Producer, input: ArtifactInput, at: number): Decision {
  const lane = control.lanes[input.lane];
  const refused = lane && refusal(lane, from);
  if (refused !== undefined) return drop(refused);
  if (lane === undefined && !input.last && Object.keys(control.lanes).length >= LANES_MAX) {
    return failTask(control, `more than ${LANES_MAX} streamed artifacts`, at);
  }
  // An append to an artifact that is not open would be lost by some clients and doubled by others: it opens or replaces instead (S0-13).
  const append = input.append && lane?.phase === 'open';
  const owner = { producer: from.id, attempt: from.attempt, artifact: input.artifact };
  const fact = artifactFact(control, input.lane, owner, { parts: input.parts, append, lastChunk: input.last }, at);
  return { facts: [input.source === undefined ? fact : { ...fact, source: input.source }] };
}

function status(control: TaskControl, from: Producer, input: StatusInput, at: number): Decision {
  const isRoot = from.id === rootProducer(control);
  if (!isRoot && !passesThrough(control, from, input)) return drop('not root');
  // working -> working is legal and says nothing new unless it brings a message (S0-23).
  if (input.state === control.state && input.message === undefined) return drop('no change');
  if (pathTo(control.state, input.state).length === 0) return drop('illegal transition');
  const facts = new Facts(control);
  if (isTerminal(input.state)) closeLanes(facts, at);
  changeState(facts, input.state, at, { ...input, ...(!isRoot && { call: from.id }) });
  return facts.decision();
}

/**
 * What a called agent may say for the task: its progress in profiles where its states and messages pass, and in every profile that it needs credentials, and that it
 * goes on: they may reach it another way than by us, so its call does not end ([A2A 1.0] 7.6.1).
 */
function passesThrough(control: TaskControl, from: Producer, { state, message }: StatusInput): boolean {
  const called = control.calls[from.id];
  if (called === undefined || called.state !== undefined) return false;
  if (state === 'TASK_STATE_AUTH_REQUIRED') return message !== undefined;
  if (state !== 'TASK_STATE_WORKING') return false;
  return control.state === 'TASK_STATE_AUTH_REQUIRED' || (control.profile !== 'caipe' && message !== undefined);
}

function call(control: TaskControl, from: Producer, input: CallInput, at: number): Decision {
  if (from.id !== rootProducer(control)) return drop('not root');
  if (control.calls[input.call] !== undefined) return drop('duplicate call');
  if (Object.keys(control.calls).length >= CALLS_MAX) return failTask(control, `more than ${CALLS_MAX} agent calls`, at);
  return { facts: [{ kind: 'call.started', at, call: input.call, agent: input.agent }] };
}

function ended(control: TaskControl, from: Producer, input: EndedInput, at: number): Decision {
  const known = control.calls[input.call];
  if (known === undefined) return drop('unknown call');
  if (from.id !== input.call && from.id !== rootProducer(control)) return drop('foreign lane');
  if (known.state !== undefined && isTerminal(known.state)) return drop('ended call');
  const facts = new Facts(control);
  closeLanes(facts, at, lane => lane.producer === input.call);
  const { kind: _kind, ...said } = input;
  facts.add({ kind: 'call.ended', at, agent: known.agent, ...said });
  return facts.decision();
}

function step(control: TaskControl, from: Producer, { step: name, said }: StepInput, at: number): Decision {
  if (from.id !== rootProducer(control)) return drop('not root');
  if ((control.steps ?? 0) >= STEPS_MAX) return failTask(control, `more than ${STEPS_MAX} steps`, at);
  if (JSON.stringify(said).length > STEP_UNITS_MAX) return failTask(control, 'a step is larger than the log takes', at);
  return { facts: [{ kind: 'step.recorded', at, step: name, said }] };
}
