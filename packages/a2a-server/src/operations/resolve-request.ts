import {
  A2AError,
  fitsModes,
  isInterrupted,
  isTerminal,
  legacyOrigin,
  type Message,
  type Metadata,
  type SendRequest,
} from '@hopline/a2a';
import { isTaskId, TASK_ID_CHARS_MAX } from '@hopline/events';
import { uuidv7 } from 'uuidv7';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import type { TaskFeed } from '../feed/task-feed.ts';
import { fromLog } from '../log-faults.ts';
import { type ResolvedMessage, acquireTask, resolveFirst, resolveContinuation } from './resolve-message.ts';
import { claimTask, fingerprintOf } from './message-claim.ts';
import { assertFitsRecord } from './message-size.ts';
import { assertStorable, storeInline } from './push-configs.ts';
import { dropStrayPushConfigs } from './push-store.ts';
import { ownMessage, ownMetadata } from './reserved-metadata.ts';

/** Decides which task a message belongs to, refuses what does not fit, and stores the webhook that came along. Nothing is said to the log yet. */
export async function resolveRequest(server: A2AServer, context: OperationContext, request: SendRequest): Promise<ResolvedMessage> {
  if (request.push !== undefined) assertStorable(server, request.push);
  const { acceptedOutputModes: accepted } = request;
  if (accepted !== undefined && !fitsModes(accepted, server.outputModes())) {
    throw new A2AError('CONTENT_TYPE_NOT_SUPPORTED', { detail: 'acceptedOutputModes names nothing that the card offers' });
  }
  const message = ownMessage(request.message);
  const metadata = ownMetadata(request.metadata);
  assertFitsRecord(server, message, metadata);
  try {
    const resolved = await resolve(server, context, request.ownTaskId, message, metadata);
    await storeInline(server, context, resolved, request.push).catch(thrown => {
      if ('lease' in resolved) resolved.lease.release();
      throw thrown;
    });
    return resolved;
  } catch (thrown) {
    throw fromLog(thrown);
  }
}

function resolve(
  server: A2AServer,
  context: OperationContext,
  ownTaskId: string | undefined,
  message: Message,
  metadata: Metadata | undefined,
): Promise<ResolvedMessage> {
  if (ownTaskId !== undefined) return resolveOwned(server, context, ownTaskId, message, metadata);
  if (message.taskId !== undefined) return resolveContinuation(server, context, message, message.taskId, metadata);
  return resolveFirst(server, context, message, metadata);
}

/**
 * A message to a task whose id the client owns (legacy, C-9): an id that no task has begins one, any other continues its task. Somebody else's task is "not found".
 * Throws INVALID_PARAMS when the id cannot name a task, or when two different messages begin the same one.
 */
async function resolveOwned(
  server: A2AServer,
  context: OperationContext,
  taskId: string,
  message: Message,
  metadata: Metadata | undefined,
): Promise<ResolvedMessage> {
  if (!isTaskId(taskId)) {
    throw new A2AError('INVALID_PARAMS', { detail: `params.id must be 1 to ${TASK_ID_CHARS_MAX} of A-Z, a-z, 0-9, _ and -` });
  }
  if ((await server.log.facts.last(taskId)) === undefined) return resolveFirstOwned(server, context, taskId, message, metadata);
  const { feed, release } = await acquireTask(server, context, taskId);
  try {
    return await resolveContinuation(server, context, { ...message, messageId: nextMessageId(feed, message) }, taskId, metadata);
  } finally {
    release();
  }
}

/** The first message is known by its task's id: sent twice, on any replica, it begins one task. */
async function resolveFirstOwned(
  server: A2AServer,
  context: OperationContext,
  taskId: string,
  said: Message,
  metadata: Metadata | undefined,
): Promise<ResolvedMessage> {
  const message = { ...said, messageId: said.messageId || taskId };
  await claimTask(server.log.messageIds, context.caller, message, taskId);
  if (server.push) await dropStrayPushConfigs(server, context, taskId);
  const { contextId = uuidv7() } = message;
  return { kind: 'again', taskId, contextId, message, metadata: { ...metadata, ...legacyOrigin(Date.now()) } };
}

/**
 * A message of this form need not have an id. What says the same as the message that is being worked on is that message, sent again by a client that lost the answer;
 * said to a task that waits for an answer, it is one.
 */
function nextMessageId({ view }: TaskFeed, message: Message): string {
  if (message.messageId !== '') return message.messageId;
  const { history = [], status } = view!.task;
  const newest = history.findLast(({ role }) => role === 'ROLE_USER');
  const isWorking = !isTerminal(status.state) && !isInterrupted(status.state);
  const isAgain = isWorking && newest !== undefined && fingerprintOf(newest) === fingerprintOf(message);
  return isAgain ? newest.messageId : uuidv7();
}
