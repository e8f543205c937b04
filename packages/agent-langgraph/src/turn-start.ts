import { hash } from 'node:crypto';
import { isObject, type Message } from '@hopline/a2a';
import type { Turn } from '@hopline/agent';
import { type Graph, GraphFault, type Interrupt, type RunInput, type ThreadState } from './graph.ts';
import { readMessages } from './graph-message.ts';

/**
 * How a turn begins. `run`: run the graph with this input; `isContinued` when an earlier attempt started the run, whose output counts for
 * this turn. `interrupted` and `finished`: a process died after the end of the run and before the end of the turn, so only the end is
 * missing.
 */
type TurnStart =
  | { kind: 'run'; input: RunInput; isContinued: boolean }
  | { kind: 'interrupted'; interrupts: readonly Interrupt[] }
  | { kind: 'finished'; values: ThreadState['values'] };

/** `Turn.resume` after an interrupted turn: the interrupts shown to the client. */
type Resume = { interrupts: string[] };

export function toResume(interrupts: readonly Interrupt[]): Resume {
  return { interrupts: interrupts.map(keyOf) };
}

/** Undefined for state of another adapter, because an operator may change the adapter of an agent while its contexts continue. */
function resumeOf({ resume }: Turn): Resume | undefined {
  return isObject(resume) && Array.isArray(resume.interrupts) ? (resume as Resume) : undefined;
}

type Planning = { graph: Graph; turn: Turn; state: ThreadState | undefined; keys: ReadonlySet<string> };

export function planTurn(planning: Planning): TurnStart {
  const { turn, state } = planning;
  if (state === undefined) return { kind: 'run', input: newInput(planning), isContinued: false };
  const resume = resumeOf(turn);
  const pending = state.interrupts;
  const answered = resume === undefined ? pending : pending.filter(interrupt => resume.interrupts.includes(keyOf(interrupt)));
  // If the thread has already taken in the message, the run continues from the checkpoint, and the message is not sent to the graph again.
  const isIngested = resume === undefined ? hasIngested(state, turn) : answered.length === 0;
  if (isIngested) {
    if (pending.length > 0) return { kind: 'interrupted', interrupts: pending };
    return state.unfinished
      ? { kind: 'run', input: { kind: 'continue' }, isContinued: true }
      : { kind: 'finished', values: state.values };
  }
  if (answered.length > 0 && (resume !== undefined || isOfTask(state, turn)))
    return { kind: 'run', input: resumeInput(planning, answered), isContinued: false };
  return { kind: 'run', input: newInput(planning), isContinued: false };
}

/** In JavaScript two interrupts of one node have the same id, so the key includes the value. */
function keyOf({ id, value }: Interrupt): string {
  return `${id}:${hash('sha256', JSON.stringify(value) ?? '').slice(0, 16)}`;
}

/** Whether this message started the newest run of the thread. */
function hasIngested({ values, messageId }: ThreadState, { message }: Turn): boolean {
  if (messageId === message.messageId || inboxOf(values).messageId === message.messageId) return true;
  return readMessages(values.messages).findLast(({ type }) => type === 'human')?.id === message.messageId;
}

/** The interrupt of an abandoned task must not consume the first message of the next one. */
function isOfTask({ values, taskId }: ThreadState, turn: Turn): boolean {
  const known = taskId ?? inboxOf(values).taskId;
  return known === undefined ? turn.message.taskId === turn.taskId : known === turn.taskId;
}

function inboxOf({ a2a_inbox: inbox }: ThreadState['values']): { taskId?: unknown; messageId?: unknown } {
  if (!isObject(inbox)) return {};
  const { task, message } = inbox;
  return { taskId: isObject(task) ? task.id : undefined, messageId: isObject(message) ? message.messageId : undefined };
}

/** One message with the joined text if the state has `messages`, and the whole message if it has `a2a_inbox` (S1-6 to S1-9). */
function newInput({ graph, turn, state, keys }: Planning): RunInput {
  const { message } = turn;
  if (!keys.has('messages') && !keys.has('a2a_inbox'))
    throw new GraphFault('the state of the graph has neither messages nor a2a_inbox, so it cannot receive a message');
  const text = textIn(message);
  const isKnown = readMessages(state?.values.messages).some(({ id }) => id === message.messageId);
  const messages = text === undefined || isKnown ? [] : [graph.humanMessage(text, message.messageId)];
  return { kind: 'state', update: { ...(keys.has('messages') && { messages }), ...inboxUpdate(turn, keys) } };
}

function resumeInput({ turn, state, keys }: Planning, answered: readonly Interrupt[]): RunInput {
  const { message } = turn;
  const [part] = message.parts;
  const answer =
    textIn(message) ?? (message.parts.length === 1 && part !== undefined && 'data' in part ? part.data : message.parts);
  const isAll = answered.length === 1 && state?.interrupts.length === 1;
  // If several interrupts are pending, the answer is for the first one. The graph raises the others again.
  return { kind: 'resume', answer: isAll ? answer : { [answered[0]!.id]: answer }, update: inboxUpdate(turn, keys) };
}

function inboxUpdate(turn: Turn, keys: ReadonlySet<string>): Record<string, unknown> {
  if (!keys.has('a2a_inbox')) return {};
  const { taskId: id, contextId, message, metadata, history } = turn;
  const task = { id, contextId, status: { state: 'TASK_STATE_WORKING' }, history: [...history, message] };
  return { a2a_inbox: { task, message, metadata } };
}

/** Returns undefined when there is no text part; an empty text part counts. */
function textIn({ parts }: Message): string | undefined {
  const texts = parts.flatMap(part => part.text ?? []);
  return texts.length === 0 ? undefined : texts.join('');
}
