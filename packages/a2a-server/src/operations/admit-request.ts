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
import { type Admission, acquireTask, admitFirst, admitNext } from './admit-message.ts';
import { claimTask, fingerprintOf } from './message-claim.ts';
import { requireSayable } from './message-size.ts';
import { requireStorable, storeInline } from './push-configs.ts';
import { dropStrayPushConfigs } from './push-store.ts';
import { ownMessage, ownMetadata } from './reserved-metadata.ts';

/** Decides which task a message belongs to, refuses what does not fit, and stores the webhook that came along. Nothing is said to the log yet. */
export async function admitRequest(door: A2AServer, ask: OperationContext, request: SendRequest): Promise<Admission> {
  if (request.push !== undefined) requireStorable(door, request.push);
  const { acceptedOutputModes: accepted } = request;
  if (accepted !== undefined && !fitsModes(accepted, door.outputModes())) {
    throw new A2AError('CONTENT_TYPE_NOT_SUPPORTED', { detail: 'acceptedOutputModes names nothing that the card offers' });
  }
  const message = ownMessage(request.message);
  const metadata = ownMetadata(request.metadata);
  requireSayable(door, message, metadata);
  try {
    const admission = await admit(door, ask, request.ownTaskId, message, metadata);
    await storeInline(door, ask, admission, request.push).catch(thrown => {
      if ('lease' in admission) admission.lease.release();
      throw thrown;
    });
    return admission;
  } catch (thrown) {
    throw fromLog(thrown);
  }
}

function admit(
  door: A2AServer,
  ask: OperationContext,
  ownTaskId: string | undefined,
  message: Message,
  metadata: Metadata | undefined,
): Promise<Admission> {
  if (ownTaskId !== undefined) return admitOwned(door, ask, ownTaskId, message, metadata);
  if (message.taskId !== undefined) return admitNext(door, ask, message, message.taskId, metadata);
  return admitFirst(door, ask, message, metadata);
}

/**
 * A message to a task whose id the client owns (legacy, C-9): an id that no task has begins one, any other continues its task. Somebody else's task is "not found".
 * Throws INVALID_PARAMS when the id cannot name a task, or when two different messages begin the same one.
 */
async function admitOwned(
  door: A2AServer,
  ask: OperationContext,
  taskId: string,
  message: Message,
  metadata: Metadata | undefined,
): Promise<Admission> {
  if (!isTaskId(taskId)) {
    throw new A2AError('INVALID_PARAMS', { detail: `params.id must be 1 to ${TASK_ID_CHARS_MAX} of A-Z, a-z, 0-9, _ and -` });
  }
  if ((await door.log.facts.last(taskId)) === undefined) return admitFirstOwned(door, ask, taskId, message, metadata);
  const { feed, release } = await acquireTask(door, ask, taskId);
  try {
    return await admitNext(door, ask, { ...message, messageId: nextMessageId(feed, message) }, taskId, metadata);
  } finally {
    release();
  }
}

/** The first message is known by its task's id: sent twice, on any replica, it begins one task. */
async function admitFirstOwned(
  door: A2AServer,
  ask: OperationContext,
  taskId: string,
  said: Message,
  metadata: Metadata | undefined,
): Promise<Admission> {
  const message = { ...said, messageId: said.messageId || taskId };
  await claimTask(door.log.messageIds, ask.caller, message, taskId);
  if (door.push) await dropStrayPushConfigs(door, ask, taskId);
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
