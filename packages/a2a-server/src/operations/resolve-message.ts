import { A2AError, isTerminal, type Message, type Metadata } from '@hopline/a2a';
import { isTaskId } from '@hopline/events';
import { TURNS_MAX } from '@hopline/task';
import { uuidv7 } from 'uuidv7';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import type { TaskFeed } from '../feed/task-feed.ts';
import type { FeedLease } from '../feed/task-feeds.ts';
import { claimMessage, fingerprintOf, reusedMessageId } from './message-claim.ts';

export type ResolvedMessage = {
  taskId: string;
  contextId: string;
  message: Message;
  metadata: Metadata | undefined;
} & (
  | /** A task that cannot exist yet. */ { kind: 'new' }
  | /** The first message of a task that another request has begun, or was about to begin. */ { kind: 'again' }
  | /** A further message of a task that goes on. */ { kind: 'next'; lease: FeedLease }
  | /** The task has this message already; nothing is to be said. */ { kind: 'taken'; lease: FeedLease }
);

/** A message that names no task begins one, if it is the first with its id in its context. */
export async function resolveFirst(
  server: A2AServer,
  context: OperationContext,
  message: Message,
  metadata: Metadata | undefined,
): Promise<ResolvedMessage> {
  const taskId = uuidv7();
  const { contextId = uuidv7() } = message;
  const resolved = { taskId, contextId, message, metadata };
  if (message.contextId === undefined) return { ...resolved, kind: 'new' };
  const winner = await claimMessage(server.log.messageIds, { owner: context.caller, contextId }, message, taskId);
  return winner === taskId ? { ...resolved, kind: 'new' } : { ...resolved, kind: 'again', taskId: winner };
}

/** A further message of a task that must exist. */
export async function resolveContinuation(
  server: A2AServer,
  context: OperationContext,
  message: Message,
  taskId: string,
  metadata: Metadata | undefined,
): Promise<ResolvedMessage> {
  const lease = await acquireTask(server, context, taskId);
  try {
    const aggregate = lease.feed.aggregate!;
    const { contextId } = aggregate;
    if (message.contextId !== undefined && message.contextId !== contextId) {
      throw new A2AError('INVALID_PARAMS', { detail: 'the context, or session, is not that of the task', taskId });
    }
    const resolved = { taskId, contextId, message, metadata, lease };
    if (hasMessage(lease.feed, message)) return { ...resolved, kind: 'taken' };
    if (isTerminal(aggregate.state)) throw taskEnded(taskId);
    if (aggregate.turn >= TURNS_MAX) {
      throw new A2AError('UNSUPPORTED_OPERATION', { detail: `the task has ${TURNS_MAX} messages already`, taskId });
    }
    if ((await claimMessage(server.log.messageIds, { owner: context.caller, contextId }, message, taskId)) !== taskId)
      throw reusedMessageId();
    return { ...resolved, kind: hasMessage(lease.feed, message) ? 'taken' : 'next' };
  } catch (thrown) {
    lease.release();
    throw thrown;
  }
}

export function taskEnded(taskId: string): A2AError {
  return new A2AError('UNSUPPORTED_OPERATION', { detail: 'the task has ended', taskId });
}

/** Whether the task has the message already. Throws INVALID_PARAMS when it has another one under its id. */
export function hasMessage(feed: TaskFeed, message: Message): boolean {
  if (feed.aggregate?.messageIds.includes(message.messageId) !== true) return false;
  const known = feed.view?.task.history?.find(one => one.messageId === message.messageId);
  if (known !== undefined && fingerprintOf(known) !== fingerprintOf(message)) throw reusedMessageId();
  return true;
}

/** The feed of a task that must exist. What cannot be an id is an unknown one. */
export async function acquireTask(server: A2AServer, { caller }: OperationContext, taskId: string): Promise<FeedLease> {
  if (!isTaskId(taskId)) throw new A2AError('TASK_NOT_FOUND');
  return server.feeds.acquire(taskId, 'existing', caller);
}
