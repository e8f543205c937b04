import { A2AError } from '@hopline/a2a';

const TASK = /^tasks\/([^/]+)$/;
const PUSH_CONFIG = /^tasks\/([^/]+)\/pushNotificationConfigs\/([^/]+)$/;

/** `member`: the field that holds the name, for the error. Throws INVALID_PARAMS. */
export function taskIdOf(name: unknown, member = 'name'): string {
  const taskId = typeof name === 'string' ? TASK.exec(name)?.[1] : undefined;
  if (taskId === undefined) throw new A2AError('INVALID_PARAMS', { detail: `${member} must be tasks/{id}` });
  return taskId;
}

/** Throws INVALID_PARAMS. */
export function pushConfigIdsOf(name: unknown): { taskId: string; configId: string } {
  const [, taskId, configId] = (typeof name === 'string' ? PUSH_CONFIG.exec(name) : undefined) ?? [];
  if (taskId !== undefined && configId !== undefined) return { taskId, configId };
  throw new A2AError('INVALID_PARAMS', { detail: 'name must be tasks/{id}/pushNotificationConfigs/{id}' });
}
