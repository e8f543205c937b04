import Type from 'typebox';
import type { PushForm } from '../dialect.ts';
import { isObject, type JsonObject, list, present, text } from '../json-value.ts';
import type { NewPushConfig, PushConfig } from '../requests.ts';
import { id, metadata } from '../schema/fields.ts';
import { authentication03, authenticationOf, configId, optionalConfigId, pushConfig } from '../schema/push-params.ts';
import { paramsCheck } from '../schema/validate.ts';

/** Push configurations of 0.3 and 0.2: nested, beside the task they are for. 0.2 has one a task, without an id, and neither `list` nor `delete` before 0.2.5. */

const checkCreate = paramsCheck(
  Type.Object({ taskId: id, pushNotificationConfig: Type.Object({ ...pushConfig, authentication: authentication03 }), metadata }),
);
const checkGet = paramsCheck(Type.Object({ id, pushNotificationConfigId: optionalConfigId, metadata }));
const checkList = paramsCheck(Type.Object({ id, metadata }));
const checkDelete = paramsCheck(Type.Object({ id, pushNotificationConfigId: configId, metadata }));

/**
 * A configuration that fits its schema; undefined for none. Of several schemes it is the first that has a name, as both official SDKs take it: one request has one `Authorization`.
 * Throws INVALID_PARAMS for credentials without a scheme.
 */
export function decodePush(value: unknown): NewPushConfig | undefined {
  if (!isObject(value)) return undefined;
  const { authentication } = value;
  const { schemes, credentials } = isObject(authentication) ? authentication : {};
  const scheme = list(schemes).find(one => text(one) !== undefined);
  return {
    url: value.url as string,
    ...present({
      id: text(value.id),
      token: text(value.token),
      authentication: authenticationOf(text(scheme), text(credentials)),
    }),
  };
}

/** A configuration with its secrets: for the agent that is asked to tell, never for an answer. */
export function pushOf({ id: config, url, token, authentication }: NewPushConfig): JsonObject {
  const named = authentication && {
    schemes: [authentication.scheme],
    ...present({ credentials: authentication.credentials }),
  };
  return { ...present({ id: config }), url, ...present({ token, authentication: named }) };
}

/** Leaves out what must not be shown. */
export function shownPush({ id: config, url, authentication }: PushConfig): JsonObject {
  return pushOf({ id: config, url, ...present({ authentication: authentication && { scheme: authentication.scheme } }) });
}

export const push03: PushForm = {
  decodeCreate: params => {
    checkCreate(params);
    const { taskId, pushNotificationConfig } = params as { taskId: string; pushNotificationConfig: JsonObject };
    return { taskId, config: decodePush(pushNotificationConfig)! };
  },
  decodeGet: params => {
    checkGet(params);
    const { id: taskId, pushNotificationConfigId } = params as { id: string; pushNotificationConfigId?: unknown };
    return { taskId, ...present({ id: text(pushNotificationConfigId) }) };
  },
  decodeList: params => {
    checkList(params);
    return { taskId: (params as { id: string }).id };
  },
  decodeDelete: params => {
    checkDelete(params);
    const { id: taskId, pushNotificationConfigId } = params as { id: string; pushNotificationConfigId: string };
    return { taskId, id: pushNotificationConfigId };
  },
  encode: config => ({ taskId: config.taskId, pushNotificationConfig: shownPush(config) }),
  encodeList: configs => configs.map(push03.encode),
  deleted: null,
};
