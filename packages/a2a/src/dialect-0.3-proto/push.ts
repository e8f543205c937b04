import { withJsonFieldNames } from '../dialect-1.0/json-names.ts';
import { isObject, type JsonObject, present } from '../json-value.ts';

/**
 * The params of a set. Clients send three forms: CreateTaskPushNotificationConfigRequest (the definition and the Python SDK),
 * only its `config` (the JavaScript SDK), and the bare configuration. The resource name in it is not read: Python writes
 * `None` for an absent id.
 */
export function setPushParams(taskId: unknown, request: JsonObject): JsonObject {
  const body = withJsonFieldNames(request);
  const outer = isObject(body.config) ? withJsonFieldNames(body.config) : body;
  const own = isObject(outer.pushNotificationConfig) ? outer.pushNotificationConfig : outer;
  const id = own.id || body.configId;
  return present({ taskId, pushNotificationConfig: { ...own, ...present({ id: id || undefined }) } });
}

/** A JSON-RPC result of 0.3 in ProtoJSON. */
export function protoPushConfig(result: JsonObject): JsonObject {
  const { taskId, pushNotificationConfig } = result;
  const { id } = isObject(pushNotificationConfig) ? pushNotificationConfig : {};
  return { name: `tasks/${taskId}/pushNotificationConfigs/${id}`, pushNotificationConfig };
}

export function protoPushConfigs(results: readonly JsonObject[]): JsonObject {
  return { configs: results.map(protoPushConfig), nextPageToken: '' };
}
