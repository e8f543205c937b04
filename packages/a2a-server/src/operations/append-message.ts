import { hash } from 'node:crypto';
import { joinContext } from '@hopline/context-history';
import { type CancelInput, isSameOwner, type MessageInput } from '@hopline/events';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import { fromLog } from '../log-faults.ts';
import type { ResolvedMessage } from './resolve-message.ts';
import { addToIndex } from './open-tasks.ts';

/** A message id that can stand in a header as it is: visible ASCII. Others are hashed, as JSON: in UTF-8 all halves of surrogate pairs are one. */
const HEADER_SAFE = /^[\x21-\x7e]{1,200}$/;

/**
 * Stores the message that begins a task, and enters the task into its conversation and the index. Resolves when the log has acknowledged all of it; a retry with the same message id is stored once,
 * and names the same earlier tasks.
 */
export async function appendFirst(server: A2AServer, context: OperationContext, resolved: ResolvedMessage): Promise<void> {
  const { taskId, contextId, message } = resolved;
  const enter = () =>
    joinContext(server.log.contexts, { owner: context.caller, contextId, taskId }).catch(thrown => {
      throw fromLog(thrown, taskId);
    });
  if (message.contextId !== undefined) {
    const [earlier] = await Promise.all([enter(), addToIndex(server, context, resolved)]);
    await appendMessage(server, context, resolved, earlier);
    return;
  }
  // Nobody knows the name of this context yet: nothing can stand before the task, and nothing need wait.
  await Promise.all([enter(), addToIndex(server, context, resolved), appendMessage(server, context, resolved)]);
}

/** Stores what a client said. Resolves when the log has acknowledged it; a retry with the same message id is stored once. */
export async function appendMessage(
  server: A2AServer,
  context: OperationContext,
  resolved: ResolvedMessage,
  earlier: string[] = [],
): Promise<void> {
  const { taskId, contextId, message, metadata } = resolved;
  const { role, profile } = server;
  const belongs = {
    ...(isSameOwner(context.caller, undefined) ? {} : { owner: context.caller }),
    ...(earlier.length > 0 && { earlierTasks: earlier }),
  };
  const input: MessageInput = { kind: 'message', message, contextId, role, profile, ...belongs, ...(metadata && { metadata }) };
  const { messageId } = message;
  const name = HEADER_SAFE.test(messageId) ? messageId : hash('sha256', JSON.stringify(messageId));
  await append(server, context, taskId, input, `${taskId}:msg:${name}`);
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
  try {
    await server.log.inputs.append(taskId, { v: 1, at: context.receivedAt, from: 'client', input }, { id, trace: context.hop.carrier() });
  } catch (thrown) {
    throw fromLog(thrown, taskId);
  }
}
