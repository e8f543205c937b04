/**
 * Ids of tasks (UUID version 7), and ids of contexts that a server makes for tasks: the same id with version 8. Both have a time before
 * 2109.
 */
const TASK_VERSION = '7';
const CONTEXT_VERSION = '8';
const SERVER_ID = /^(0[1-3][0-9a-f]{6}-[0-9a-f]{4}-)([78])([0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})$/;

/** The id of a context that a server makes for a task. Undefined for a task id that no server made. */
export function contextIdOf(taskId: string): string | undefined {
  return withVersion(taskId, TASK_VERSION, CONTEXT_VERSION);
}

/** The task that a context id names as its first, which need not exist. Undefined for an id that was not made for a task. */
export function firstTaskOf(contextId: string): string | undefined {
  return withVersion(contextId, CONTEXT_VERSION, TASK_VERSION);
}

function withVersion(id: string, from: string, to: string): string | undefined {
  const [, head, version, tail] = SERVER_ID.exec(id) ?? [];
  return version === from ? `${head}${to}${tail}` : undefined;
}
