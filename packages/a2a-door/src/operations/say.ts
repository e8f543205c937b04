import { hash } from 'node:crypto';
import { type CancelInput, isSameOwner, type MessageInput } from '@hopline/events';
import type { Ask, Door } from '../door.ts';
import { fromLog } from '../log-faults.ts';
import type { Admission } from './admit-message.ts';

/** A message id that can stand in a header as it is: visible ASCII. Others are hashed. */
const HEADER_SAFE = /^[\x21-\x7e]{1,200}$/;

/** Stores what a client said. Resolves when the log has acknowledged it; a retry with the same message id is stored once. */
export async function sayMessage(door: Door, ask: Ask, admission: Admission): Promise<void> {
  const { taskId, contextId, message, metadata } = admission;
  const { role, profile } = door;
  const owner = isSameOwner(ask.caller, undefined) ? {} : { owner: ask.caller };
  const input: MessageInput = { kind: 'message', message, contextId, role, profile, ...owner, ...(metadata && { metadata }) };
  const { messageId } = message;
  await say(door, ask, taskId, input, `${taskId}:msg:${HEADER_SAFE.test(messageId) ? messageId : hash('sha256', messageId)}`);
}

export async function sayCancel(door: Door, ask: Ask, taskId: string, metadata: CancelInput['metadata']): Promise<void> {
  await say(door, ask, taskId, { kind: 'cancel', ...(metadata && { metadata }) }, `${taskId}:cancel`);
}

async function say(door: Door, ask: Ask, taskId: string, input: MessageInput | CancelInput, id: string): Promise<void> {
  try {
    await door.log.inputs.say(taskId, { v: 1, at: ask.receivedAt, from: 'client', input }, { id, trace: ask.hop.carrier() });
  } catch (thrown) {
    throw fromLog(thrown, taskId);
  }
}
