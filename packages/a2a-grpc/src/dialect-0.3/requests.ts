import { A2AError, type JsonObject, present } from '@hopline/a2a';
import { setPushParams } from '@hopline/a2a/dialect-0.3-proto';

/**
 * Converts requests of the 0.3 definition into the params of JSON-RPC. Resource names become ids; missing members are left to
 * the schemas. All functions throw INVALID_PARAMS.
 */

const TASK = /^tasks\/([^/]+)$/;
const PUSH_CONFIG = /^tasks\/([^/]+)\/pushNotificationConfigs\/([^/]+)$/;

// proto3 has no absent number: clients send 0 for "not set".
const historyLengthOf = (value: unknown): unknown => (value === 0 ? undefined : value);

export function getParams({ name, historyLength }: JsonObject): JsonObject {
  return { id: taskIdOf(name), ...present({ historyLength: historyLengthOf(historyLength) }) };
}

export function taskParams({ name }: JsonObject): JsonObject {
  return { id: taskIdOf(name) };
}

export function createPushParams({ parent, ...request }: JsonObject): JsonObject {
  return setPushParams(taskIdOf(parent, 'parent'), request);
}

/** Params of the methods that get or delete a configuration. */
export function pushParams({ name }: JsonObject): JsonObject {
  const { taskId, configId } = pushConfigIdsOf(name);
  return { id: taskId, pushNotificationConfigId: configId };
}

export function listPushParams({ parent }: JsonObject): JsonObject {
  return { id: taskIdOf(parent, 'parent') };
}

/** `member`: the field that contains the name, used in the error. Throws INVALID_PARAMS. */
function taskIdOf(name: unknown, member = 'name'): string {
  const taskId = typeof name === 'string' ? TASK.exec(name)?.[1] : undefined;
  if (taskId === undefined) throw new A2AError('INVALID_PARAMS', { detail: `${member} must be tasks/{id}` });
  return taskId;
}

/** Throws INVALID_PARAMS. */
function pushConfigIdsOf(name: unknown): { taskId: string; configId: string } {
  const [, taskId, configId] = (typeof name === 'string' ? PUSH_CONFIG.exec(name) : undefined) ?? [];
  if (taskId !== undefined && configId !== undefined) return { taskId, configId };
  throw new A2AError('INVALID_PARAMS', { detail: 'name must be tasks/{id}/pushNotificationConfigs/{id}' });
}
