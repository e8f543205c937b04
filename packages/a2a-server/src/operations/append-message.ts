import { hash } from 'node:crypto';
import { joinContext } from '@hopline/context-history';
import { type CancelInput, isSameOwner, type MessageInput } from '@hopline/events';
import { SPAN } from '@hopline/telemetry';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import { fromLog } from '../log-faults.ts';
import { requireRoom } from './message-room.ts';
import { addToLists } from './open-tasks.ts';
import { askedTurnOf, type ResolvedMessage } from './resolve-message.ts';

/**
 * The id of a message as a header value. Visible ASCII stays as it is. Other ids are hashed as JSON, because UTF-8 would map every lone
 * surrogate to the same character.
 */
const HEADER_SAFE = /^[\x21-\x7e]{1,200}$/;

/**
 * Appends the message that starts a task, and adds the task to its context and to the index. Resolves when the log has acknowledged all
 * writes. If it is retried with the same message id, the message is stored once and names the same earlier tasks.
 */
export async function appendFirst(server: A2AServer, context: OperationContext, resolved: ResolvedMessage): Promise<void> {
  const { taskId, contextId, message } = resolved;
  await requireRoom(server, context, taskId);
  await server.quotas.addTask(context.caller, taskId);
  const isNew = message.contextId === undefined;
  const join = () =>
    joinContext(server.log, { owner: context.caller, contextId, taskId, isNew }).catch(thrown => {
      throw fromLog(thrown, taskId);
    });
  if (!isNew) {
    const [earlier] = await Promise.all([join(), addToLists(server, context, resolved)]);
    await storeMessage(server, context, resolved, earlier);
    return;
  }
  // A context whose id this request has made has no earlier tasks, so all writes run at once. The message is written first, because its
  // answer is awaited.
  await Promise.all([storeMessage(server, context, resolved), join(), addToLists(server, context, resolved)]);
}

/** Appends a client's message. Resolves when the log has acknowledged it; a retry with the same message id is stored once. */
export async function appendMessage(server: A2AServer, context: OperationContext, resolved: ResolvedMessage): Promise<void> {
  await requireRoom(server, context, resolved.taskId);
  await storeMessage(server, context, resolved);
}

async function storeMessage(
  server: A2AServer,
  context: OperationContext,
  resolved: ResolvedMessage,
  earlier: string[] = [],
): Promise<void> {
  const { taskId, contextId, message, metadata, kind, ifGeneration } = resolved;
  const ifTurn = askedTurnOf(resolved);
  const { role, profile } = server;
  const optional = {
    ...(isSameOwner(context.caller, undefined) ? {} : { owner: context.caller }),
    ...(earlier.length > 0 && { earlierTasks: earlier }),
    ...(metadata && { metadata }),
    ...(kind === 'continuation' && { continues: true as const }),
    ...(ifGeneration !== undefined && { ifGeneration }),
    ...(ifTurn !== undefined && { ifTurn }),
    ...(kind === 'first' && { creates: true as const }),
  };
  const input: MessageInput = { kind: 'message', message, contextId, role, profile, ...optional };
  const { messageId } = message;
  const name = HEADER_SAFE.test(messageId) ? messageId : hash('sha256', JSON.stringify(messageId));
  // A refused message may be sent again with another condition.
  const condition = ifGeneration !== undefined ? `:${ifGeneration}` : ifTurn !== undefined ? `:turn-${ifTurn}` : '';
  await append(server, context, taskId, input, `${taskId}:msg:${name}${condition}`);
}

export async function appendCancel(
  server: A2AServer,
  context: OperationContext,
  taskId: string,
  metadata: CancelInput['metadata'],
): Promise<void> {
  await append(server, context, taskId, { kind: 'cancel', ...(metadata && { metadata }) }, `${taskId}:cancel`);
}

async function append(
  server: A2AServer,
  context: OperationContext,
  taskId: string,
  input: MessageInput | CancelInput,
  id: string,
): Promise<void> {
  const record = { v: 1, at: context.receivedAt, from: 'client', input } as const;
  try {
    await server.log.inputs.append(taskId, record, { id, trace: context.hop.carrier() });
    // The spans of all effects of the input are below this span, so this one is exported before the process can die.
    context.hop.taken({ name: SPAN.deliverEvents, kind: 'internal' });
  } catch (thrown) {
    throw fromLog(thrown, taskId);
  }
}
