import { hash } from 'node:crypto';
import type { Owner } from '@hopline/events';

/** Keys of the bucket of message ids. They are hashed, because ids of clients need not be valid keys. */

/** The key of a message. Contexts of two owners are different even if their ids are equal. */
export function messageIdKey(owner: Owner | undefined, contextId: string, messageId: string): string {
  return hash('sha256', JSON.stringify([owner?.tenant ?? null, owner?.subject ?? null, contextId, messageId]));
}

/** The key of a task id that a client chose. */
export function chosenTaskKey(taskId: string): string {
  return hash('sha256', JSON.stringify(['task', taskId]));
}
