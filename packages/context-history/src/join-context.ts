import { hash } from 'node:crypto';
import { contextIdOf, firstTaskOf, isSameOwner, type Owner } from '@hopline/events';
import { CONTEXT_TASKS_MAX, type Log, LogConflict, LogUnavailable } from '@hopline/log';

/** Maximum number of attempts for one task. Each round has only one winner among the tasks that start in one context at the same time. */
export const TRIES_MAX = 50;

/**
 * `isNew`: the context id was made for this task, so the context is created without reading it first; a repeated join finds that it exists.
 */
type ContextTask = { owner: Owner | undefined; contextId: string; taskId: string; isNew?: boolean };

type ContextLog = Pick<Log, 'contexts' | 'facts'>;

/**
 * The key contains the owner, because two owners may use the same context id for different contexts. It is hashed, because ids of clients need not be
 * valid keys.
 */
export function contextKey(owner: Owner | undefined, contextId: string): string {
  return hash('sha256', JSON.stringify([owner?.tenant ?? null, owner?.subject ?? null, contextId]));
}

/** The id of a context that a server makes for a task. It names the context's first task, so that no entry in the bucket has to. */
export function contextIdFor(taskId: string): string {
  const id = contextIdOf(taskId);
  if (id === undefined) throw new TypeError('a context is made for a task id of a server: UUID version 7');
  return id;
}

/** Whether a context has tasks of its owner. */
export async function isContextInUse(log: ContextLog, owner: Owner | undefined, contextId: string): Promise<boolean> {
  if ((await log.contexts.get(contextKey(owner, contextId))) !== undefined) return true;
  const first = firstTaskOf(contextId);
  return first !== undefined && (await isIn(log, owner, contextId, first));
}

/**
 * Checks the task itself, because the id of another caller's context must not reveal its tasks, and a client may make up an id of this
 * form.
 */
async function isIn({ facts }: ContextLog, owner: Owner | undefined, contextId: string, taskId: string): Promise<boolean> {
  const aggregate = (await facts.last(taskId))?.record.aggregate;
  return aggregate !== undefined && aggregate.contextId === contextId && isSameOwner(aggregate.owner, owner);
}

/**
 * Adds a task to its context and resolves with the earlier tasks, oldest first, at most CONTEXT_TASKS_MAX - 1. Idempotent. Rejects with
 * LogUnavailable.
 */
export async function joinContext(log: ContextLog, { owner, contextId, taskId, isNew = false }: ContextTask): Promise<string[]> {
  const { contexts } = log;
  const key = contextKey(owner, contextId);
  const first = firstTaskOf(contextId);
  if (taskId === first) return [];
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const entry = isNew && tries === 1 ? undefined : await contexts.get(key);
    const listed = entry?.value.tasks ?? [];
    // A list that lacks the task named by the id is new or comes from a server of an earlier version. A full list has dropped that task.
    const isListed = first === undefined || listed.includes(first) || listed.length >= CONTEXT_TASKS_MAX;
    const tasks = isListed || !(await isIn(log, owner, contextId, first)) ? listed : [first, ...listed];
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
  throw new LogUnavailable('too many tasks are starting in this context: retry');
}
