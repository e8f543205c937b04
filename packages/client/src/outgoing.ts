import type { Message } from '@hopline/a2a/client';

/** An undefined member counts as absent. */
type OrUndefined<T> = { [Key in keyof T]: T extends Record<Key, T[Key]> ? T[Key] : T[Key] | undefined };

/** A text, or the parts and other members of a message. */
export type OutgoingMessage = string | OrUndefined<Omit<Message, 'messageId' | 'role'> & { messageId?: string }>;

/**
 * The message in the form that is sent, on retries too. The server recognizes a duplicate by messageId and context, so missing ones are
 * created here. A message of an existing task has the task's context.
 */
export function messageOf(outgoing: OutgoingMessage): Message {
  const message = typeof outgoing === 'string' ? { parts: [{ text: outgoing }] } : defined(outgoing);
  const contextId = message.contextId ?? (message.taskId === undefined ? randomId() : undefined);
  return {
    ...message,
    messageId: message.messageId ?? randomId(),
    role: 'ROLE_USER',
    ...(contextId !== undefined && { contextId }),
  };
}

function defined(outgoing: Exclude<OutgoingMessage, string>): Omit<Message, 'messageId' | 'role'> & { messageId?: string } {
  return Object.fromEntries(Object.entries(outgoing).filter(([, value]) => value !== undefined)) as never;
}

/** The trace context of a new, sampled trace. Its root span is the caller's and is not exported. */
export function newTraceparent(): string {
  const hex = Array.from(crypto.getRandomValues(new Uint8Array(24)), byte => byte.toString(16).padStart(2, '0')).join('');
  return `00-${hex.slice(0, 32)}-${hex.slice(32)}-01`;
}

/** A UUID of version 4. `crypto.randomUUID` exists only on pages served over TLS. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
