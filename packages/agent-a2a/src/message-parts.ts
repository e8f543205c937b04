import { randomUUID } from 'node:crypto';
import type { Message, Part } from '@hopline/a2a';

export function otherParts(parts: readonly Part[]): Part[] {
  return parts.filter(part => part.text === undefined);
}

/** A message of the agent as clients may see it: with an id, without the ids of the agent's own task (S0-34). */
export function shownMessage(message: Message): Message {
  const { taskId: _task, contextId: _context, referenceTaskIds: _references, ...rest } = message;
  return { ...rest, messageId: message.messageId || randomUUID(), role: 'ROLE_AGENT' };
}

export function textMessage(text: string): Message {
  return { messageId: randomUUID(), role: 'ROLE_AGENT', parts: [{ text }] };
}
