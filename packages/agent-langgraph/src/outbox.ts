import { isInterrupted, isObject, isTerminal, type Message, type Task } from '@hopline/a2a';
import type { AgentEvent } from '@hopline/agent';
import { own, ownMetadata, readMessageObject, readTask } from './a2a-payload.ts';
import { GraphFault } from './graph.ts';

type Done = Extract<AgentEvent, { type: 'done' }>;

/** What an outbox (or the like, said in `custom`) makes of the end of the turn: events before it, and the end. */
export type Ending = { events: AgentEvent[]; end: AgentEvent };

/** S1-13: exactly one of a task and a message. Throws GraphFault. */
export function readOutbox(outbox: unknown): Ending {
  if (!isObject(outbox)) throw new GraphFault('the a2a_outbox of the graph is no object');
  const { message = null, task = null } = outbox;
  if ((message === null) === (task === null))
    throw new GraphFault(
      `the a2a_outbox of the graph holds ${message === null ? 'neither a message nor a task' : 'both a message and a task'}`,
    );
  if (message !== null) {
    if (!isObject(message) || !Array.isArray(message.parts))
      throw new GraphFault('the message in the a2a_outbox of the graph has no parts');
    return { events: [], end: messageEnding(readMessageObject(message)) };
  }
  const read = isObject(task) ? readTask(task) : undefined;
  if (read === undefined || !('task' in read)) throw new GraphFault('the task in the a2a_outbox of the graph is none');
  return taskEnding(read.task);
}

/** S1-16: the message is the answer and joins the history. */
export function messageEnding(message: Message): Done {
  return { type: 'done', message, history: [message] };
}

/** S1-17: the task is a patch: its artifacts and messages are added, its metadata merged, its state and message are how the turn ends. */
export function taskEnding({ artifacts = [], history = [], metadata, status }: Task): Ending {
  const events = artifacts.map(
    (artifact): AgentEvent => ({ type: 'artifact', artifact, append: false, lastChunk: true, source: { mode: 'values' } }),
  );
  const message = status.message && own(status.message);
  const added = [...history.map(own), ...(message ? [message] : [])];
  const kept = ownMetadata(metadata);
  const more = { ...(message && { message }), ...(added.length > 0 && { history: added }), ...(kept && { metadata: kept }) };
  return { events, end: endOf(status.state, more) };
}

function endOf(state: Task['status']['state'], more: Omit<Done, 'type'>): AgentEvent {
  const { message } = more;
  if (isInterrupted(state))
    return { type: 'interrupted', state, message: message ?? own({ messageId: '', role: 'ROLE_AGENT', parts: [] }) };
  if (isTerminal(state) && state !== 'TASK_STATE_COMPLETED')
    return { type: 'failed', state, reason: 'the graph says so', retryable: false, ...(message && { message }) };
  return { type: 'done', ...more };
}
