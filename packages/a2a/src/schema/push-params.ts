import { A2AError } from '../errors.ts';
import { isObject, type JsonObject, object, present, text } from '../json-value.ts';
import type { NewPushConfig, PushAuthentication } from '../requests.ts';
import { id, metadata, optionalObject } from './fields.ts';
import {
  PAGE_TOKEN_CHARS_MAX,
  PUSH_CONFIG_ID_CHARS_MAX,
  PUSH_SCHEME_CHARS_MAX,
  PUSH_SECRET_CHARS_MAX,
  PUSH_URL_CHARS_MAX,
} from './limits.ts';
import { Type } from './type.ts';

/**
 * Params of push configurations. All members but the id become lines of an HTTP request, so none may contain control characters.
 * Absent, null and empty mean the same, as everywhere.
 */

const nullable = { nullable: true } as const;

/** Excludes lone surrogates: they have no UTF-8 form, so two such ids would be the same key in the log. */
const CONFIG_ID = '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]*$';

const configIdOptions = {
  maxLength: PUSH_CONFIG_ID_CHARS_MAX,
  pattern: CONFIG_ID,
  reason: `must be at most ${PUSH_CONFIG_ID_CHARS_MAX} characters without control characters`,
};

const configId = Type.String({ ...configIdOptions, minLength: 1 });
const optionalConfigId = Type.Optional(Type.String({ ...configIdOptions, ...nullable }));

const url = Type.String({
  minLength: 1,
  maxLength: PUSH_URL_CHARS_MAX,
  pattern: '^[^\\u0000-\\u0020\\u007f]*$',
  // Informs readers of the schema; the server's own validation of URLs is stricter than any format.
  format: 'uri',
  reason: `must be a URL of at most ${PUSH_URL_CHARS_MAX} characters`,
});

const secret = Type.Optional(
  Type.String({
    maxLength: PUSH_SECRET_CHARS_MAX,
    pattern: '^[\\u0020-\\u007e]*$',
    reason: `must be at most ${PUSH_SECRET_CHARS_MAX} printable ASCII characters`,
    ...nullable,
  }),
);

/** Name of an HTTP authentication scheme: a token of RFC 9110, 5.6.2. */
const scheme = Type.String({
  maxLength: PUSH_SCHEME_CHARS_MAX,
  pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]*$",
  reason: 'must be the name of an HTTP authentication scheme',
});

/** Alternative schemes in one configuration. */
const SCHEMES_MAX = 16;

/** `authentication` of 1.0. */
export const authentication10 = optionalObject({ scheme, credentials: secret });
/** `authentication` of 0.3 and before: alternative schemes, of which the sender uses one. */
export const authentication03 = optionalObject({
  schemes: Type.Array(scheme, { maxItems: SCHEMES_MAX }),
  credentials: secret,
});

/** Members with the same names in every dialect. */
export const pushConfig = { id: optionalConfigId, url, token: secret };

const pushConfig03 = Type.Object({ ...pushConfig, authentication: authentication03 });

/** Names in which the versions have an inline configuration. */
const INLINE_MEMBERS = ['taskPushNotificationConfig', 'pushNotificationConfig', 'push_notification_config'] as const;

/**
 * Throws INVALID_PARAMS when the configuration of a send has the webhook only under the name of another version: a client whose webhook is
 * ignored would wait in vain. A client may send both names.
 */
export function requireInlineMember(configuration: JsonObject, version: string, own: (typeof INLINE_MEMBERS)[number]): void {
  const other = INLINE_MEMBERS.find(member => member !== own && isObject(configuration[member]));
  if (other === undefined || isObject(configuration[own])) return;
  const detail = `configuration.${other} is not a member of A2A ${version}: ${version} has the webhook in configuration.${own}`;
  throw new A2AError('INVALID_PARAMS', { detail });
}

/** Params of 1.0: TaskPushNotificationConfig of a2a.proto 1.0.1 is flat, and its `taskId` is empty in an inline configuration. */
export const createPush10 = Type.Object({ taskId: id, ...pushConfig, authentication: authentication10 });
export const onePush10 = Type.Object({ taskId: id, id: configId });
export const listPush10 = Type.Object({
  taskId: id,
  // 0 is what ProtoJSON writes for "not set".
  pageSize: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_147_483_647, nullable: true })),
  pageToken: Type.Optional(Type.String({ maxLength: PAGE_TOKEN_CHARS_MAX, nullable: true })),
});

/** Params of 0.3 and 0.2: the configuration is nested, next to its task id. */
export const createPush03 = Type.Object({ taskId: id, pushNotificationConfig: pushConfig03, metadata });
export const getPush03 = Type.Object({ id, pushNotificationConfigId: optionalConfigId, metadata });
export const listPush03 = Type.Object({ id, metadata });
export const deletePush03 = Type.Object({ id, pushNotificationConfigId: configId, metadata });

/** Params of April 2025. A task has only one configuration, so `id` is the id of the task. */
export const createPushLegacy = Type.Object({ id, pushNotificationConfig: pushConfig03 });
export const getPushLegacy = Type.Object({ id, metadata });

/**
 * Decodes a validated configuration; undefined for none. `schemeOf`: reads the name of the authentication scheme, which dialects have in
 * different places. Throws INVALID_PARAMS for credentials without a scheme.
 */
export function pushConfigOf(value: unknown, schemeOf: (authentication: JsonObject) => unknown): NewPushConfig | undefined {
  if (!isObject(value)) return undefined;
  const authentication = object(value.authentication) ?? {};
  return {
    url: value.url as string,
    ...present({
      id: text(value.id),
      token: text(value.token),
      authentication: authenticationOf(text(schemeOf(authentication)), text(authentication.credentials)),
    }),
  };
}

function authenticationOf(name: string | undefined, credentials: string | undefined): PushAuthentication | undefined {
  if (name !== undefined) return { scheme: name, ...present({ credentials }) };
  if (credentials === undefined) return undefined;
  throw new A2AError('INVALID_PARAMS', {
    detail: 'a push configuration has credentials without an authentication scheme: set the scheme too',
  });
}
