import { isTerminal } from '@hopline/a2a';
import type { Fact } from '@hopline/events';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import type { TaskFeed } from '../feed/task-feed.ts';
import type { FeedLease } from '../feed/task-feeds.ts';
import { type ResolvedMessage, taskEnded, hasMessage } from './resolve-message.ts';
import { appendFirst, appendMessage } from './append-message.ts';

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
  append(): Promise<void>;
};

export async function beginTurn(server: A2AServer, context: OperationContext, resolved: ResolvedMessage): Promise<Turn> {
  const first = () => appendFirst(server, context, resolved);
  const append = () => appendMessage(server, context, resolved);
  switch (resolved.kind) {
    case 'new':
      return { lease: await server.feeds.acquire(resolved.taskId, 'new', context.caller), start: 'beginning', append: first };
    case 'next':
      return { lease: resolved.lease, start: 'message', append };
    case 'taken':
      return {
        lease: resolved.lease,
        start: isFirst(resolved.lease.feed, resolved) ? 'beginning' : 'now',
        append: async () => {},
      };
    case 'again': {
      const lease = await server.feeds.acquire(resolved.taskId, 'awaited', context.caller);
      try {
        return againOn(lease, resolved, first, append);
      } catch (thrown) {
        lease.release();
        throw thrown;
      }
    }
  }
}

function againOn(lease: FeedLease, resolved: ResolvedMessage, first: () => Promise<void>, append: () => Promise<void>): Turn {
  const { feed } = lease;
  if (feed.view === undefined) return { lease, start: 'beginning', append: first };
  if (hasMessage(feed, resolved.message))
    return { lease, start: isFirst(feed, resolved) ? 'beginning' : 'now', append: async () => {} };
  if (feed.ended) throw taskEnded(resolved.taskId);
  // It was claimed for a task that goes on, and never said.
  return { lease, start: 'message', append };
}

function isFirst(feed: TaskFeed, { message }: ResolvedMessage): boolean {
  return feed.aggregate?.messageIds[0] === message.messageId;
}

/** Whether a fact takes the message into the task. Throws UNSUPPORTED_OPERATION when the task ends instead: the message came too late. */
export function takes(fact: Fact, { message, taskId }: ResolvedMessage): boolean {
  if (fact.kind === 'task.created') return true;
  if (fact.kind === 'message.received') return fact.message.messageId === message.messageId;
  if (fact.kind === 'status.changed' && isTerminal(fact.event.statusUpdate.status.state)) {
    throw taskEnded(taskId);
  }
  return false;
}
