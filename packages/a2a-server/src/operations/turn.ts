import { isTerminal } from '@hopline/a2a';
import type { Fact } from '@hopline/events';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import type { TaskFeed } from '../feed/task-feed.ts';
import type { FeedLease } from '../feed/task-feeds.ts';
import { type Admission, hasEnded, isTaken } from './admit-message.ts';
import { sayFirst, sayMessage } from './append-message.ts';

/**
 * One message on its way into its task. The feed is followed before the message is said, so that nothing of the answer can be missed.
 * `start` says where its part of the task's stream begins.
 */
export type Turn = {
  lease: FeedLease;
  start:
    | /** With the task's first fact. */ 'beginning'
    | /** With the fact that takes the message. */ 'message'
    | /** The task has had it for longer: with the task as it is. */ 'now';
  /** Stores the message; nothing to do when the task has it. Call after listening. */
  say(): Promise<void>;
};

export async function beginTurn(door: A2AServer, ask: OperationContext, admission: Admission): Promise<Turn> {
  const first = () => sayFirst(door, ask, admission);
  const say = () => sayMessage(door, ask, admission);
  switch (admission.kind) {
    case 'new':
      return { lease: await door.feeds.acquire(admission.taskId, 'new', ask.caller), start: 'beginning', say: first };
    case 'next':
      return { lease: admission.lease, start: 'message', say };
    case 'taken':
      return {
        lease: admission.lease,
        start: isFirst(admission.lease.feed, admission) ? 'beginning' : 'now',
        say: async () => {},
      };
    case 'again': {
      const lease = await door.feeds.acquire(admission.taskId, 'awaited', ask.caller);
      try {
        return againOn(lease, admission, first, say);
      } catch (thrown) {
        lease.release();
        throw thrown;
      }
    }
  }
}

function againOn(lease: FeedLease, admission: Admission, first: () => Promise<void>, say: () => Promise<void>): Turn {
  const { feed } = lease;
  if (feed.view === undefined) return { lease, start: 'beginning', say: first };
  if (isTaken(feed, admission.message))
    return { lease, start: isFirst(feed, admission) ? 'beginning' : 'now', say: async () => {} };
  if (feed.ended) throw hasEnded(admission.taskId);
  // It was claimed for a task that goes on, and never said.
  return { lease, start: 'message', say };
}

function isFirst(feed: TaskFeed, { message }: Admission): boolean {
  return feed.aggregate?.messageIds[0] === message.messageId;
}

/** Whether a fact takes the message into the task. Throws UNSUPPORTED_OPERATION when the task ends instead: the message came too late. */
export function takes(fact: Fact, { message, taskId }: Admission): boolean {
  if (fact.kind === 'task.created') return true;
  if (fact.kind === 'message.received') return fact.message.messageId === message.messageId;
  if (fact.kind === 'status.changed' && isTerminal(fact.event.statusUpdate.status.state)) {
    throw hasEnded(taskId);
  }
  return false;
}
