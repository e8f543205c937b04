import Type from 'typebox';
import type { PushForm } from '../dialect.ts';
import { isObject, type JsonObject, present, text } from '../json-value.ts';
import type { NewPushConfig } from '../requests.ts';
import { id } from '../schema/fields.ts';
import { PAGE_TOKEN_CHARS_MAX } from '../schema/limits.ts';
import { authentication10, authenticationOf, configId, pushConfig } from '../schema/push-params.ts';
import { paramsCheck } from '../schema/validate.ts';
import { withJsonNames } from './json-names.ts';

/**
 * Push configurations of a2a.proto 1.0.1: TaskPushNotificationConfig is flat, and its `taskId` is empty in an inline
 * configuration.
 */

export const createPushParams = Type.Object({ taskId: id, ...pushConfig, authentication: authentication10 });
export const onePushParams = Type.Object({ taskId: id, id: configId });
export const listPushParams = Type.Object({
  taskId: id,
  // 0 is what ProtoJSON writes for "not set".
  pageSize: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_147_483_647, nullable: true })),
  pageToken: Type.Optional(Type.String({ maxLength: PAGE_TOKEN_CHARS_MAX, nullable: true })),
});

const checkCreate = paramsCheck(createPushParams);
const checkOne = paramsCheck(onePushParams);
const checkList = paramsCheck(listPushParams);

/** Decodes a validated configuration; undefined for none. Throws INVALID_PARAMS for credentials without a scheme. */
export function decodePush(value: unknown): NewPushConfig | undefined {
  if (!isObject(value)) return undefined;
  const { authentication } = value;
  const { scheme, credentials } = isObject(authentication) ? authentication : {};
  return {
    url: value.url as string,
    ...present({
      id: text(value.id),
      token: text(value.token),
      authentication: authenticationOf(text(scheme), text(credentials)),
    }),
  };
}

function decodeOne(params: unknown): { taskId: string; id: string } {
  const named = withJsonNames(params);
  checkOne(named);
  const { taskId, id: config } = named as { taskId: string; id: string };
  return { taskId, id: config };
}

export const push10: PushForm = {
  decodeCreate: params => {
    const named = withJsonNames(params);
    checkCreate(named);
    return { taskId: (named as JsonObject).taskId as string, config: decodePush(named)! };
  },
  decodeGet: decodeOne,
  decodeDelete: decodeOne,
  decodeList: params => {
    const named = withJsonNames(params);
    checkList(named);
    const { taskId, pageSize, pageToken } = named as { taskId: string; pageSize?: number | null; pageToken?: unknown };
    return { taskId, ...present({ pageSize: pageSize || undefined, pageToken: text(pageToken) }) };
  },
  encode: ({ id: config, taskId, url, authentication }) => ({
    id: config,
    taskId,
    url,
    ...present({ authentication: authentication && { scheme: authentication.scheme } }),
  }),
  encodeList: (configs, nextPageToken) => ({ configs: configs.map(push10.encode), nextPageToken }),
  deleted: {},
};
