import { isInterrupted, isTerminal } from '@hopline/a2a';
import type { MessageInput, TaskControl } from '@hopline/events';
import type { ClientItem } from './commands.ts';
import { changeState, closeLanes, type Decision, drop, Facts, timestamp } from './decision.ts';
import { TURNS_MAX } from './limits.ts';

/** A client's message or cancel. */
export function decideClient(control: TaskControl | undefined, item: ClientItem, at: number): Decision {
  if (item.input.kind === 'message') {
    return control === undefined ? createTask(item.taskId, item.input, at) : continueTask(control, item.input, at);
  }
  if (control === undefined) return drop('unknown task');
  if (isTerminal(control.state)) return drop('terminal');
  const facts = new Facts(control);
  closeLanes(facts, at);
  changeState(facts, 'TASK_STATE_CANCELED', at);
  return facts.decision();
}

function createTask(taskId: string, input: MessageInput, at: number): Decision {
  const { message, contextId, role, profile, metadata, owner, earlier } = input;
  const status = { state: 'TASK_STATE_SUBMITTED', timestamp: timestamp(at) } as const;
  const task = { id: taskId, contextId, status, history: [message], ...(metadata && { metadata }) };
  const belongs = { role, profile, ...(owner && { owner }), ...(earlier && { earlier }) };
  return {
    facts: [{ kind: 'task.created', at, generation: 1, event: { task }, ...belongs, ...(metadata && { request: metadata }) }],
  };
}

/**
 * A later message begins a new turn. What the turn before left open is closed first: its workers stop when they see the turn change.
 */
function continueTask(control: TaskControl, input: MessageInput, at: number): Decision {
  if (isTerminal(control.state)) return drop('terminal');
  if (control.messageIds.includes(input.message.messageId)) return drop('duplicate message');
  if (control.turn >= TURNS_MAX) return drop('too many turns');
  const facts = new Facts(control);
  closeLanes(facts, at);
  const { message, metadata } = input;
  facts.add({ kind: 'message.received', at, message, turn: control.turn + 1, ...(metadata && { request: metadata }) });
  if (isInterrupted(control.state)) changeState(facts, 'TASK_STATE_WORKING', at);
  return facts.decision();
}
