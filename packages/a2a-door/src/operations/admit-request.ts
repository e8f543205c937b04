import { A2AError, isInterrupted, isTerminal, legacyOrigin, type Message, type Metadata, type SendRequest } from '@hopline/a2a';
import { isTaskId, TASK_ID_CHARS_MAX } from '@hopline/events';
import { uuidv7 } from 'uuidv7';
import type { Ask, Door } from '../door.ts';
import type { TaskFeed } from '../feed/task-feed.ts';
import { fromLog } from '../log-faults.ts';
import { type Admission, acquireTask, admitFirst, admitNext } from './admit-message.ts';
import { claimTask, fingerprintOf } from './message-claim.ts';
import { ownMessage, ownMetadata } from './reserved-metadata.ts';

/** Decides which task a message belongs to, and refuses what does not fit. Nothing is said to the log yet. */
export async function admitRequest(door: Door, ask: Ask, request: SendRequest): Promise<Admission> {
  if (request.push !== undefined) throw new A2AError('PUSH_NOTIFICATION_NOT_SUPPORTED');
  const message = ownMessage(request.message);
  const metadata = ownMetadata(request.metadata);
  try {
    if (request.ownTaskId !== undefined) return await admitOwned(door, ask, request.ownTaskId, message, metadata);
    if (message.taskId !== undefined) return await admitNext(door, ask, message, message.taskId, metadata);
    return await admitFirst(door, ask, message, metadata);
  } catch (thrown) {
    throw fromLog(thrown);
  }
}

/**
 * A message to a task whose id the client owns (legacy, C-9): an id that no task has begins one, any other continues its task. Somebody else's task is "not found".
 * Throws INVALID_PARAMS when the id cannot name a task, or when two different messages begin the same one.
 */
async function admitOwned(
  door: Door,
  ask: Ask,
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
  door: Door,
  { caller }: Ask,
  taskId: string,
  said: Message,
  metadata: Metadata | undefined,
): Promise<Admission> {
  const message = { ...said, messageId: said.messageId || taskId };
  await claimTask(door.log.messageIds, caller, message, taskId);
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
