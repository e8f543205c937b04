import { isInterrupted, isObject, isTerminal, type Message, type Task } from '@hopline/a2a';
import type { AgentEvent } from '@hopline/agent';
import { agentMessage, clientMetadata, readMessageObject, readTask } from './a2a-payload.ts';
import { GraphFault } from './graph.ts';

type Done = Extract<AgentEvent, { type: 'done' }>;

/** The end of a turn, from an outbox or a `custom` event, with the events before it. */
type Ending = { events: AgentEvent[]; end: AgentEvent };

/** Reads `a2a_outbox`, which must hold exactly one of `task` and `message`. Throws GraphFault. */
export function readOutbox(outbox: unknown): Ending {
  if (!isObject(outbox)) throw new GraphFault('the a2a_outbox of the graph is not an object');
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
  if (read === undefined || !('task' in read)) throw new GraphFault('the task in the a2a_outbox of the graph is not an A2A task');
  return taskEnding(read.task);
}

/** The message is the answer and is added to the history. */
export function messageEnding(message: Message): Done {
  return { type: 'done', message, history: [message] };
}

/** The task is a patch: artifacts and messages are added, metadata is merged, state and status message end the turn. */
export function taskEnding({ artifacts = [], history = [], metadata, status }: Task): Ending {
  const events = artifacts.map(
    (artifact): AgentEvent => ({ type: 'artifact', artifact, append: false, lastChunk: true, source: { mode: 'values' } }),
  );
  const message = status.message && agentMessage(status.message);
  const added = [...history.map(agentMessage), ...(message ? [message] : [])];
  const kept = clientMetadata(metadata);
  const more = { ...(message && { message }), ...(added.length > 0 && { history: added }), ...(kept && { metadata: kept }) };
  return { events, end: endOf(status.state, more) };
}

function endOf(state: Task['status']['state'], more: Omit<Done, 'type'>): AgentEvent {
  const { message } = more;
  if (isInterrupted(state))
    return { type: 'interrupted', state, message: message ?? agentMessage({ messageId: '', role: 'ROLE_AGENT', parts: [] }) };
  if (isTerminal(state) && state !== 'TASK_STATE_COMPLETED')
    return {
      type: 'failed',
      state,
      reason: 'the graph ended the turn in this state',
      retryable: false,
      ...(message && { message }),
    };
  return { type: 'done', ...more };
}
