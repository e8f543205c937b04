import { type JsonObject, present } from '@hopline/a2a';
import { setPushParams } from '@hopline/a2a/dialect-0.3-proto';
import { pushConfigIdsOf, taskIdOf } from './resource-names.ts';

/** Requests of the 0.3 proto as the params that JSON-RPC of 0.3 has for the same. Resource names become ids; what is missing is left to the schemas. All throw INVALID_PARAMS. */

// The proto knows no absent number: 0 is what a client sends that said nothing.
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

/** For get and delete. */
export function pushParams({ name }: JsonObject): JsonObject {
  const { taskId, configId } = pushConfigIdsOf(name);
  return { id: taskId, pushNotificationConfigId: configId };
}

export function listPushParams({ parent }: JsonObject): JsonObject {
  return { id: taskIdOf(parent, 'parent') };
}
