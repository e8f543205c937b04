import { randomUUID } from 'node:crypto';
import type { Message } from '@hopline/a2a';

/** A message of a client with one text part, in the 1.0 form. */
export function userMessage(text: string, more: Partial<Message> = {}): Message {
  return { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more };
}
