import { isInterrupted, isTerminal } from '@hopline/a2a';
import type { MessageInput, TaskAggregate } from '@hopline/events';
import type { ClientCommand } from './commands.ts';
import { changeState, closeLanes, type Decision, Facts, reject, statusFact, timestamp, withTaskIds } from './decision.ts';
import { TURNS_MAX } from './limits.ts';

/** A client's message or cancel. */
export function decideClient(aggregate: TaskAggregate | undefined, command: ClientCommand, at: number): Decision {
  if (command.input.kind === 'unknown') return reject('unknown kind');
  // The server of an agent has clients of only that agent.
  if (command.server !== undefined && aggregate !== undefined && aggregate.role !== command.server) return reject('other agent');
  if (command.input.kind === 'message') {
    if (aggregate !== undefined) return continueTask(aggregate, command.input, at);
    return command.input.continues ? reject('unknown task') : createTask(command.taskId, command.input, at);
  }
  if (aggregate === undefined) return reject('unknown task');
  if (isTerminal(aggregate.state)) return reject('terminal');
  const facts = new Facts(aggregate);
  closeLanes(facts, at);
  changeState(facts, 'TASK_STATE_CANCELED', at);
  return facts.decision();
}

function createTask(taskId: string, input: MessageInput, at: number): Decision {
  const { message, contextId, role, profile, metadata, owner, earlierTasks } = input;
  const status = { state: 'TASK_STATE_SUBMITTED', timestamp: timestamp(at) } as const;
  const history = [withTaskIds(message, { taskId, contextId })];
  const task = { id: taskId, contextId, status, history, ...(metadata && { metadata }) };
  const origin = { role, profile, ...(owner && { owner }), ...(earlierTasks && { earlierTasks }) };
  return {
    facts: [{ kind: 'task.created', at, generation: 1, event: { task }, ...origin, ...(metadata && { request: metadata }) }],
  };
}

/**
 * A later message begins a new turn. Lanes of the previous turn are closed first; its workers stop when they see the new turn.
 *
 * Conditions are decided only here. Every relay appends its decisions after the record on which they are based, so two messages with the
 * same generation in their condition cannot both be accepted. An accepted message always makes an event, so that the task leaves that
 * generation.
 */
function continueTask(aggregate: TaskAggregate, input: MessageInput, at: number): Decision {
  if (isTerminal(aggregate.state)) return reject('terminal');
  if (aggregate.messageIds.includes(input.message.messageId)) return reject('duplicate message');
  if (aggregate.turn >= TURNS_MAX) return reject('too many turns');
  const { ifGeneration, ifTurn } = input;
  if (ifGeneration !== undefined && ifGeneration !== aggregate.generation) return reject('other generation');
  const isAsked = aggregate.state === 'TASK_STATE_INPUT_REQUIRED' && aggregate.turn === ifTurn;
  if (ifTurn !== undefined && !isAsked) return reject('question answered');
  const facts = new Facts(aggregate);
  closeLanes(facts, at);
  const { metadata } = input;
  const message = withTaskIds(input.message, aggregate);
  facts.add({ kind: 'message.received', at, message, turn: aggregate.turn + 1, ...(metadata && { request: metadata }) });
  if (isInterrupted(aggregate.state)) changeState(facts, 'TASK_STATE_WORKING', at);
  else if (ifGeneration === facts.aggregate.generation) facts.add(statusFact(facts.aggregate, aggregate.state, at, {}));
  return facts.decision();
}
