import { hash } from 'node:crypto';
import type { Owner } from '@hopline/events';
import { CONTEXT_TASKS_MAX, type ContextEntry, type KeyValue, LogConflict, LogUnavailable } from '@hopline/log';

/** Tasks that begin in one context at the same time each win one round. */
export const TRIES_MAX = 50;

export type Place = { owner: Owner | undefined; contextId: string; taskId: string };

/** Contexts of two owners are two conversations, though they have one name. A hash, because names of clients are no keys. */
export function contextKey(owner: Owner | undefined, contextId: string): string {
  return hash('sha256', JSON.stringify([owner?.tenant ?? null, owner?.subject ?? null, contextId]));
}

/**
 * Enters a task into its conversation, once however often it is called, and resolves with the tasks before it, oldest first, at most CONTEXT_TASKS_MAX - 1. Rejects with LogUnavailable.
 */
export async function joinContext(contexts: KeyValue<ContextEntry>, { owner, contextId, taskId }: Place): Promise<string[]> {
  const key = contextKey(owner, contextId);
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const known = await contexts.get(key);
    const tasks = known?.value.tasks ?? [];
    const place = tasks.indexOf(taskId);
    if (place >= 0) return tasks.slice(0, place);
    const next = { tasks: [...tasks, taskId].slice(-CONTEXT_TASKS_MAX) };
    try {
      if (known === undefined) await contexts.create(key, next);
      else await contexts.update(key, next, known.revision);
      return next.tasks.slice(0, -1);
    } catch (thrown) {
      if (!(thrown instanceof LogConflict)) throw thrown;
    }
  }
  throw new LogUnavailable('too many tasks begin in one context at once');
}
