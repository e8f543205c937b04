import type { Message } from '@hopline/a2a';

/** What to say: a text, or the parts and whatever else a message has. */
export type OutgoingMessage = string | (Omit<Message, 'messageId' | 'role'> & { messageId?: string });

/**
 * The message as it is sent, and sent again: the server knows a repeated one by messageId and context, so both are made here when they are missing. A message of a
 * known task has the task's context, whatever it is.
 */
export function messageOf(outgoing: OutgoingMessage): Message {
  const said = typeof outgoing === 'string' ? { parts: [{ text: outgoing }] } : outgoing;
  const contextId = said.contextId ?? (said.taskId === undefined ? randomId() : undefined);
  return {
    ...said,
    messageId: said.messageId ?? randomId(),
    role: 'ROLE_USER',
    ...(contextId !== undefined && { contextId }),
  };
}

/** 128 random bits in the form of a UUID of version 4. `crypto.randomUUID` exists only on pages served over TLS; this exists everywhere. */
function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
