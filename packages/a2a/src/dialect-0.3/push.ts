import Type from 'typebox';
import type { PushForm } from '../dialect.ts';
import { isObject, type JsonObject, list, present, text } from '../json-value.ts';
import type { NewPushConfig, PushConfig } from '../requests.ts';
import { id, metadata } from '../schema/fields.ts';
import { authentication03, authenticationOf, configId, optionalConfigId, pushConfig } from '../schema/push-params.ts';
import { paramsCheck } from '../schema/validate.ts';

/**
 * Push configurations of 0.3 and 0.2: nested, beside their task id. 0.2 has one per task, without an id, and neither `list` nor
 * `delete` before 0.2.5.
 */

const checkCreate = paramsCheck(
  Type.Object({ taskId: id, pushNotificationConfig: Type.Object({ ...pushConfig, authentication: authentication03 }), metadata }),
);
const checkGet = paramsCheck(Type.Object({ id, pushNotificationConfigId: optionalConfigId, metadata }));
const checkList = paramsCheck(Type.Object({ id, metadata }));
const checkDelete = paramsCheck(Type.Object({ id, pushNotificationConfigId: configId, metadata }));

/**
 * Decodes a validated configuration; undefined for none. If it has several schemes, the first one with a name is used, as in both official
 * SDKs: a request has one `Authorization`. Throws INVALID_PARAMS for credentials without a scheme.
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

/** A configuration with its secrets: only for the agent that calls the webhook, never for a response. */
export function pushOf({ id: config, url, token, authentication }: NewPushConfig): JsonObject {
  const named = authentication && {
    schemes: [authentication.scheme],
    ...present({ credentials: authentication.credentials }),
  };
  return { ...present({ id: config }), url, ...present({ token, authentication: named }) };
}

/** Omits the secrets. */
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
