import { withJsonFieldNames } from '../dialect-1.0/json-names.ts';
import { isObject, type JsonObject, present } from '../json-value.ts';

/**
 * The params of a set. Three forms are sent: CreateTaskPushNotificationConfigRequest, which is the proto's and the Python SDK's, its `config` alone, as the JavaScript SDK does, and the
 * configuration bare. The resource name in it is not read: Python writes `None` for an id that was not given.
 */
export function setPushParams(taskId: unknown, request: JsonObject): JsonObject {
  const body = withJsonFieldNames(request);
  const outer = isObject(body.config) ? withJsonFieldNames(body.config) : body;
  const own = isObject(outer.pushNotificationConfig) ? outer.pushNotificationConfig : outer;
  const id = own.id || body.configId;
  return present({ taskId, pushNotificationConfig: { ...own, ...present({ id: id || undefined }) } });
}

/** The result of JSON-RPC of 0.3 in the form of the proto. */
export function protoPushConfig(result: JsonObject): JsonObject {
  const { taskId, pushNotificationConfig } = result;
  const { id } = isObject(pushNotificationConfig) ? pushNotificationConfig : {};
  return { name: `tasks/${taskId}/pushNotificationConfigs/${id}`, pushNotificationConfig };
}

export function protoPushConfigs(results: readonly JsonObject[]): JsonObject {
  return { configs: results.map(protoPushConfig), nextPageToken: '' };
}
