import { hash } from 'node:crypto';
import { isObject, type Message } from '@hopline/a2a';
import type { Turn } from '@hopline/agent';
import { type Graph, GraphFault, type Interrupt, type RunInput, type ThreadState } from './graph.ts';
import { readMessages } from './graph-message.ts';

/**
 * How a turn begins. `run`: with this input. `asked`: the thread already waits for an answer. `finished`: the thread already has the answer. The last two are what is left to say after a process died between
 * the end of the run and the end of the turn. `again`: the run is one that was begun before: what it had written counts for this turn.
 */
export type TurnStart =
  | { kind: 'run'; input: RunInput; again: boolean }
  | { kind: 'asked'; interrupts: readonly Interrupt[] }
  | { kind: 'finished'; values: ThreadState['values'] };

/** What an interrupted turn leaves (`Turn.resume`): the questions it asked. */
export type Asked = { interrupts: string[] };

export function askedOf(interrupts: readonly Interrupt[]): Asked {
  return { interrupts: interrupts.map(nameOf) };
}

type Planning = { graph: Graph; turn: Turn; state: ThreadState | undefined; keys: ReadonlySet<string> };

export function planTurn(planning: Planning): TurnStart {
  const { turn, state } = planning;
  if (state === undefined) return { kind: 'run', input: newInput(planning), again: false };
  const asked = turn.resume as Asked | undefined;
  const pending = state.interrupts;
  const answered = asked === undefined ? pending : pending.filter(interrupt => asked.interrupts.includes(nameOf(interrupt)));
  // S1-9: what the thread has ingested goes on from its checkpoint and is not said to the graph again.
  const isIngested = asked === undefined ? hasIngested(state, turn) : answered.length === 0;
  if (isIngested) {
    if (pending.length > 0) return { kind: 'asked', interrupts: pending };
    return state.unfinished
      ? { kind: 'run', input: { kind: 'continue' }, again: true }
      : { kind: 'finished', values: state.values };
  }
  if (answered.length > 0 && (asked !== undefined || isOfTask(state, turn)))
    return { kind: 'run', input: resumeInput(planning, answered), again: false };
  return { kind: 'run', input: newInput(planning), again: false };
}

/** Two questions of one node have one id in JavaScript: what was asked is part of the name. */
function nameOf({ id, value }: Interrupt): string {
  return `${id}:${hash('sha256', JSON.stringify(value) ?? '').slice(0, 16)}`;
}

/** Whether the thread's newest run is the one of this message. */
function hasIngested({ values, messageId }: ThreadState, { message }: Turn): boolean {
  if (messageId === message.messageId || inboxOf(values).messageId === message.messageId) return true;
  return readMessages(values.messages).findLast(({ type }) => type === 'human')?.id === message.messageId;
}

/** An interrupt of a task that was left alone must not eat the first message of the next one. */
function isOfTask({ values, taskId }: ThreadState, turn: Turn): boolean {
  const known = taskId ?? inboxOf(values).taskId;
  return known === undefined ? turn.message.taskId === turn.taskId : known === turn.taskId;
}

function inboxOf({ a2a_inbox: inbox }: ThreadState['values']): { taskId?: unknown; messageId?: unknown } {
  if (!isObject(inbox)) return {};
  const { task, message } = inbox;
  return { taskId: isObject(task) ? task.id : undefined, messageId: isObject(message) ? message.messageId : undefined };
}

/** S1-6 to S1-9: one message of the joined text where the state has messages and there is text; the whole message in the inbox. */
function newInput({ graph, turn, state, keys }: Planning): RunInput {
  const { message } = turn;
  if (!keys.has('messages') && !keys.has('a2a_inbox'))
    throw new GraphFault('the state of the graph has neither messages nor a2a_inbox: nothing can be said to it');
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
  // Of several questions that wait at once the first is answered; the others are asked again by the graph.
  return { kind: 'resume', answer: isAll ? answer : { [answered[0]!.id]: answer }, update: inboxUpdate(turn, keys) };
}

function inboxUpdate(turn: Turn, keys: ReadonlySet<string>): Record<string, unknown> {
  if (!keys.has('a2a_inbox')) return {};
  const { taskId: id, contextId, message, metadata, history } = turn;
  const task = { id, contextId, status: { state: 'TASK_STATE_WORKING' }, history: [...history, message] };
  return { a2a_inbox: { task, message, metadata } };
}

/** undefined: there is no text part. An empty text is one. */
function textIn({ parts }: Message): string | undefined {
  const texts = parts.flatMap(part => part.text ?? []);
  return texts.length === 0 ? undefined : texts.join('');
}
