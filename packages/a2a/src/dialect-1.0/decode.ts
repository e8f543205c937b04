import type { DecodedEvent } from '../dialect.ts';
import { isObject, type JsonObject, metadata, present, text } from '../json-value.ts';
import { objectReader } from '../object-reader.ts';
import type { CreatePushRequest, ListPushRequest, NewPushConfig } from '../requests.ts';
import { createPush10, listPush10, onePush10, pushConfigOf } from '../schema/push-params.ts';
import { sendParams } from '../schema/send-params-1.0.ts';
import { paramsCheck } from '../schema/validate.ts';
import { type Part, TASK_STATES } from '../types.ts';

const reader = objectReader({
  part: decodePart,
  state: value => TASK_STATES.find(state => state === value),
  isUser: role => role === 'ROLE_USER',
});

const decodeMessage = reader.message;

function decodePart(value: unknown): Part {
  const content = isObject(value) ? contentOf(value) : undefined;
  // A value that is not a part of this dialect is kept as data.
  if (!isObject(value) || content === undefined) return { data: value };
  const { metadata: own, filename, mediaType } = value;
  if (own === undefined && filename === undefined && mediaType === undefined) return content;
  return { ...content, ...present({ metadata: metadata(own), filename: text(filename), mediaType: text(mediaType) }) };
}

function contentOf(part: JsonObject): Part | undefined {
  if (typeof part.text === 'string') return { text: part.text };
  if (typeof part.raw === 'string') return { raw: part.raw };
  if (typeof part.url === 'string') return { url: part.url };
  return 'data' in part ? { data: part.data } : undefined;
}

/** Decodes one StreamResponse by its member. */
export function decodeEvent(result: unknown): DecodedEvent {
  if (!isObject(result)) return { unknown: 'not an object' };
  const { task, message, statusUpdate, artifactUpdate } = result;
  if (isObject(task)) return reader.task(task);
  if (isObject(message)) return { event: { message: decodeMessage(message) } };
  if (isObject(statusUpdate)) return reader.statusUpdate(statusUpdate);
  if (isObject(artifactUpdate)) return reader.artifactUpdate(artifactUpdate);
  return { unknown: 'unknown kind' };
}

/**
 * The params under the JSON names of their fields. [A2A 1.0] 5.5 requires `historyLength` on the wire, but clients generated
 * from the Protocol Buffers definition send `history_length`, and a ProtoJSON parser accepts both
 * (https://protobuf.dev/programming-guides/json/). Otherwise the field would be silently ignored. Names inside client-owned
 * objects (metadata, data) stay. Where both names are present, the JSON name wins.
 */
export function withJsonNames(params: unknown): unknown {
  if (!isObject(params)) return params;
  const renamed = withJsonFieldNames(params);
  for (const member of ['message', 'configuration']) {
    if (isObject(renamed[member])) renamed[member] = withJsonFieldNames(renamed[member]);
  }
  const { message } = renamed;
  if (isObject(message) && Array.isArray(message.parts)) {
    message.parts = message.parts.map(part => (isObject(part) ? withJsonFieldNames(part) : part));
  }
  return renamed;
}

/** The fields of one object, not of nested ones, under their JSON names. */
export function withJsonFieldNames(fields: JsonObject): JsonObject {
  const named = Object.entries(fields).map(([name, value]) => [name.replaceAll(/_([a-z])/g, toUpper), value] as const);
  return { ...Object.fromEntries(named), ...fields };
}

const toUpper = (_match: string, letter: string): string => letter.toUpperCase();

export const sendNotation = {
  check: paramsCheck(sendParams),
  message: decodeMessage,
  blocking: (configuration: { returnImmediately?: unknown }) => configuration.returnImmediately !== true,
  push: (configuration: { taskPushNotificationConfig?: unknown }) => decodePush(configuration.taskPushNotificationConfig),
};

/** Decodes a validated configuration; undefined for none. Throws INVALID_PARAMS for credentials without a scheme. */
function decodePush(value: unknown): NewPushConfig | undefined {
  return pushConfigOf(value, ({ scheme }) => scheme);
}

const checkCreatePush = paramsCheck(createPush10);
const checkOnePush = paramsCheck(onePush10);
const checkListPush = paramsCheck(listPush10);

export function decodeCreatePush(params: unknown): CreatePushRequest {
  const named = withJsonNames(params);
  checkCreatePush(named);
  return { taskId: (named as JsonObject).taskId as string, config: decodePush(named)! };
}

/** The params of a get and of a delete. */
export function decodeOnePush(params: unknown): { taskId: string; id: string } {
  const named = withJsonNames(params);
  checkOnePush(named);
  const { taskId, id } = named as { taskId: string; id: string };
  return { taskId, id };
}

export function decodeListPush(params: unknown): ListPushRequest {
  const named = withJsonNames(params);
  checkListPush(named);
  const { taskId, pageSize, pageToken } = named as { taskId: string; pageSize?: number | null; pageToken?: unknown };
  return { taskId, ...present({ pageSize: pageSize || undefined, pageToken: text(pageToken) }) };
}
