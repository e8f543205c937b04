import { hash } from 'node:crypto';
import { joinContext } from '@hopline/context-history';
import { type CancelInput, isSameOwner, type MessageInput } from '@hopline/events';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import { fromLog } from '../log-faults.ts';
import type { Admission } from './admit-message.ts';
import { enterIndex } from './open-tasks.ts';

/** A message id that can stand in a header as it is: visible ASCII. Others are hashed, as JSON: in UTF-8 all halves of surrogate pairs are one. */
const HEADER_SAFE = /^[\x21-\x7e]{1,200}$/;

/**
 * Stores the message that begins a task, and enters the task into its conversation and the index. Resolves when the log has acknowledged all of it; a retry with the same message id is stored once,
 * and names the same earlier tasks.
 */
export async function sayFirst(door: A2AServer, ask: OperationContext, admission: Admission): Promise<void> {
  const { taskId, contextId, message } = admission;
  const enter = () =>
    joinContext(door.log.contexts, { owner: ask.caller, contextId, taskId }).catch(thrown => {
      throw fromLog(thrown, taskId);
    });
  if (message.contextId !== undefined) {
    const [earlier] = await Promise.all([enter(), enterIndex(door, ask, admission)]);
    await sayMessage(door, ask, admission, earlier);
    return;
  }
  // Nobody knows the name of this context yet: nothing can stand before the task, and nothing need wait.
  await Promise.all([enter(), enterIndex(door, ask, admission), sayMessage(door, ask, admission)]);
}

/** Stores what a client said. Resolves when the log has acknowledged it; a retry with the same message id is stored once. */
export async function sayMessage(
  door: A2AServer,
  ask: OperationContext,
  admission: Admission,
  earlier: string[] = [],
): Promise<void> {
  const { taskId, contextId, message, metadata } = admission;
  const { role, profile } = door;
  const belongs = {
    ...(isSameOwner(ask.caller, undefined) ? {} : { owner: ask.caller }),
    ...(earlier.length > 0 && { earlierTasks: earlier }),
  };
  const input: MessageInput = { kind: 'message', message, contextId, role, profile, ...belongs, ...(metadata && { metadata }) };
  const { messageId } = message;
  const name = HEADER_SAFE.test(messageId) ? messageId : hash('sha256', JSON.stringify(messageId));
  await say(door, ask, taskId, input, `${taskId}:msg:${name}`);
}

export async function sayCancel(
  door: A2AServer,
  ask: OperationContext,
  taskId: string,
  metadata: CancelInput['metadata'],
): Promise<void> {
  await say(door, ask, taskId, { kind: 'cancel', ...(metadata && { metadata }) }, `${taskId}:cancel`);
}

async function say(
  door: A2AServer,
  ask: OperationContext,
  taskId: string,
  input: MessageInput | CancelInput,
  id: string,
): Promise<void> {
  try {
    await door.log.inputs.append(taskId, { v: 1, at: ask.receivedAt, from: 'client', input }, { id, trace: ask.hop.carrier() });
  } catch (thrown) {
    throw fromLog(thrown, taskId);
  }
}
