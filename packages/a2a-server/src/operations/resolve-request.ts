import {
  A2AError,
  fitsModes,
  isDeeperThan,
  isInProgress,
  legacyOrigin,
  type Message,
  type Metadata,
  type SendRequest,
  textOf,
} from '@hopline/a2a';
import { INPUT_DEPTH_MAX } from '@hopline/events';
import { ATTR, correlationOf } from '@hopline/telemetry';
import { uuidv7 } from 'uuidv7';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import type { TaskFeed } from '../feed/task-feed.ts';
import { fromLog } from '../log-faults.ts';
import { validTaskIdOf } from './client-task-id.ts';
import { forkMetadata } from './fork.ts';
import { claimTask, fingerprintOf } from './message-claim.ts';
import { requireTaskRoom } from './message-room.ts';
import { assertStorable } from './push-configs.ts';
import { dropStrayPushConfigs, storeInline } from './push-store.ts';
import { requestMetadata, withoutReservedKeys } from './reserved-metadata.ts';
import {
  acquireTask,
  nameTask,
  type ResolvedMessage,
  resolveContinuation,
  resolveFirst,
  type SentMessage,
} from './resolve-message.ts';

/** Bytes of a record in addition to the message: ids, owner, earlier tasks of the context, the aggregate of a new task. */
const ENVELOPE_BYTES = 32 * 1024;

/** Validates a send, resolves its message to a task, and stores an inline push configuration. The message is not appended yet. */
export async function resolveRequest(
  server: A2AServer,
  context: OperationContext,
  request: SendRequest,
): Promise<ResolvedMessage> {
  if (request.push !== undefined) assertStorable(server, request.push);
  const { acceptedOutputModes: accepted } = request;
  if (accepted !== undefined && !fitsModes(accepted, server.outputModes())) {
    throw new A2AError('CONTENT_TYPE_NOT_SUPPORTED', {
      detail: 'acceptedOutputModes names no media type of the agent card',
    });
  }
  assertNotBlank(request.message);
  const message = withoutReservedKeys(request.message);
  const clientMetadata = requestMetadata(request.metadata);
  assertFitsRecord(server, message, clientMetadata);
  try {
    const fork = await forkMetadata(server, context, request);
    const metadata = fork === undefined ? clientMetadata : { ...clientMetadata, ...fork };
    const resolved = await resolve(server, context, request, { message, metadata, push: request.push });
    nameTask(context, resolved.taskId, resolved.contextId);
    context.hop.set({ [ATTR.a2aMessage]: resolved.message.messageId, [ATTR.correlation]: correlationOf(metadata) });
    // A continuation has stored its webhook already.
    if (resolved.kind === 'continuation') return resolved;
    await storeInline(server, context, resolved, request.push).catch(thrown => {
      if ('lease' in resolved) resolved.lease.release();
      throw thrown;
    });
    return resolved;
  } catch (thrown) {
    throw fromLog(thrown);
  }
}

/**
 * Throws INVALID_PARAMS for a message whose text parts are only white space, because it is neither a question nor an answer. A message with
 * empty text is accepted (S1-7).
 */
function assertNotBlank({ parts }: Message): void {
  if (parts.every(({ text }) => text !== undefined) && /^\s+$/.test(textOf(parts)))
    throw new A2AError('INVALID_PARAMS', {
      detail: 'message.parts must contain data, a file, or text that is not only white space',
    });
}

/** Levels of a message, or of its metadata, in JSON. Each is a member of its input. */
const MESSAGE_DEPTH_MAX = INPUT_DEPTH_MAX - 1;

/**
 * Throws INVALID_PARAMS for a message that nests deeper than an input may, and REQUEST_TOO_LARGE for one that exceeds a record of the log,
 * as an input or as the first fact of its task, which holds the metadata twice. Such an input could never become a fact, and an oversized
 * one would be redelivered endlessly. The check comes before the message id is claimed, so that a shorter message can use the id.
 */
function assertFitsRecord({ log }: A2AServer, message: Message, metadata: Metadata | undefined): void {
  if (isDeeperThan(message, MESSAGE_DEPTH_MAX) || isDeeperThan(metadata, MESSAGE_DEPTH_MAX))
    throw new A2AError('INVALID_PARAMS', {
      detail: `the message must not nest deeper than ${MESSAGE_DEPTH_MAX} levels, nor its metadata`,
    });
  const bytes = jsonBytes(message) + 2 * jsonBytes(metadata ?? {}) + ENVELOPE_BYTES;
  if (bytes <= log.recordBytesMax) return;
  throw new A2AError('REQUEST_TOO_LARGE', { detail: 'the message exceeds the largest record of the log' });
}

function jsonBytes(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function resolve(
  server: A2AServer,
  context: OperationContext,
  { chosenTaskId, ifGenerationMatch }: SendRequest,
  sent: SentMessage,
): Promise<ResolvedMessage> {
  if (chosenTaskId !== undefined) return resolveChosen(server, context, chosenTaskId, sent);
  const { taskId } = sent.message;
  if (taskId !== undefined) return resolveContinuation(server, context, { ...sent, taskId, ifGeneration: ifGenerationMatch });
  return resolveFirst(server, context, sent);
}

/**
 * Resolves a message to a task whose id the client chose (legacy, C-9): an unknown id starts a task, a known one continues it. Each caller
 * has its own ids. Throws INVALID_PARAMS for an invalid id, or when two different messages start the same task.
 */
async function resolveChosen(
  server: A2AServer,
  context: OperationContext,
  chosenTaskId: string,
  sent: SentMessage,
): Promise<ResolvedMessage> {
  const { message } = sent;
  const taskId = await validTaskIdOf(server, context, chosenTaskId);
  if ((await server.log.facts.last(taskId)) === undefined) {
    const first = { ...message, messageId: message.messageId || chosenTaskId };
    return resolveFirstChosen(server, context, taskId, { ...sent, message: first });
  }
  const { feed, release } = await acquireTask(server, context, taskId);
  try {
    const identified = { ...message, messageId: await messageIdFor(feed, message) };
    return await resolveContinuation(server, context, { ...sent, taskId, message: identified });
  } finally {
    release();
  }
}

/** A first message without an id gets an id derived from its task, so that sending it twice, to any replica, starts one task. */
async function resolveFirstChosen(
  server: A2AServer,
  context: OperationContext,
  taskId: string,
  { message, metadata, push }: SentMessage,
): Promise<ResolvedMessage> {
  const requireRoom = () => requireTaskRoom(server, context, taskId, push);
  await claimTask(server.log.messageIds, context.caller, message, taskId, requireRoom);
  if (server.push) await dropStrayPushConfigs(server, context, taskId);
  const { contextId = uuidv7() } = message;
  return { kind: 'retry', taskId, contextId, message, metadata: { ...metadata, ...legacyOrigin(Date.now()) } };
}

/**
 * Legacy messages may lack an id. While the task works, a message with the same content as its newest message counts as a retry by a client
 * that lost the response. While the task waits for input, it counts as an answer and gets a new id.
 */
async function messageIdFor(feed: TaskFeed, message: Message): Promise<string> {
  if (message.messageId !== '') return message.messageId;
  const { history = [], status } = (await feed.readView()).view.task;
  const newest = history.findLast(({ role }) => role === 'ROLE_USER');
  const isWorking = isInProgress(status.state);
  const isRetry = isWorking && newest !== undefined && fingerprintOf(newest) === fingerprintOf(message);
  return isRetry ? newest.messageId : uuidv7();
}
