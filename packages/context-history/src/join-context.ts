import { hash } from 'node:crypto';
import type { Owner } from '@hopline/events';
import { CONTEXT_TASKS_MAX, type ContextEntry, type KeyValue, LogConflict, LogUnavailable } from '@hopline/log';

/** Of the tasks that start in one context at the same time, one wins each round. */
export const TRIES_MAX = 50;

/** `isNew`: the context id was made for this task, so the context is created without a read; a repeated join finds it there. */
export type ContextTask = { owner: Owner | undefined; contextId: string; taskId: string; isNew?: boolean };

/** Two owners may use the same context id for different contexts. A hash, because ids of clients need not be valid keys. */
export function contextKey(owner: Owner | undefined, contextId: string): string {
  return hash('sha256', JSON.stringify([owner?.tenant ?? null, owner?.subject ?? null, contextId]));
}

/**
 * Adds a task to its context and resolves with the tasks before it, oldest first, at most CONTEXT_TASKS_MAX - 1. Idempotent.
 * Rejects with LogUnavailable.
 */
export async function joinContext(
  contexts: KeyValue<ContextEntry>,
  { owner, contextId, taskId, isNew = false }: ContextTask,
): Promise<string[]> {
  const key = contextKey(owner, contextId);
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const entry = isNew && tries === 1 ? undefined : await contexts.get(key);
    const tasks = entry?.value.tasks ?? [];
    const position = tasks.indexOf(taskId);
    if (position >= 0) return tasks.slice(0, position);
    const next = { tasks: [...tasks, taskId].slice(-CONTEXT_TASKS_MAX) };
    try {
      if (entry === undefined) await contexts.create(key, next);
      else await contexts.update(key, next, entry.revision);
      return next.tasks.slice(0, -1);
    } catch (error) {
      if (!(error instanceof LogConflict)) throw error;
    }
  }
  throw new LogUnavailable('too many tasks start in one context at once: retry');
}
