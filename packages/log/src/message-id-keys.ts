import { hash } from 'node:crypto';
import type { Owner } from '@hopline/events';

/** The keys of the bucket of message ids. Hashed, because ids of clients need not be valid keys. */

/** Of a message. Contexts of two owners are different even if their ids are equal. */
export function messageIdKey(owner: Owner | undefined, contextId: string, messageId: string): string {
  return hash('sha256', JSON.stringify([owner?.tenant ?? null, owner?.subject ?? null, contextId, messageId]));
}

/** Of a task id that a client chose. */
export function chosenTaskKey(taskId: string): string {
  return hash('sha256', JSON.stringify(['task', taskId]));
}
