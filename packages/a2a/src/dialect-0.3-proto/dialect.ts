import type { Dialect, PushForm } from '../dialect.ts';
import { withJsonFieldNames } from '../dialect-1.0/decode.ts';
import { DIALECTS } from '../dialects.ts';
import { isObject, type JsonObject } from '../json-value.ts';
import { sendParams, setPushParams } from './decode.ts';
import { protoPushConfig, protoPushConfigs, protoResult, protoTask } from './encode.ts';

const json = DIALECTS['0.3'];

/** Leaves a value that is not an object to the schema of the JSON form. */
const objectOr = (params: unknown, read: (object: JsonObject) => JsonObject): unknown =>
  isObject(params) ? read(params) : params;

/** Requests for one configuration name it by two path parameters: `taskId`, and its own `id`. */
const named = ({ taskId, id }: JsonObject): JsonObject => ({
  id: taskId,
  ...(id !== undefined && { pushNotificationConfigId: id }),
});

const push: PushForm = {
  decodeCreate: params => json.push.decodeCreate(objectOr(params, body => setPushParams(body.taskId, body))),
  decodeGet: params => json.push.decodeGet(objectOr(params, named)),
  decodeList: params => json.push.decodeList(objectOr(params, named)),
  decodeDelete: params => json.push.decodeDelete(objectOr(params, named)),
  encode: config => protoPushConfig(json.push.encode(config)),
  encodeList: (configs, next) => protoPushConfigs(json.push.encodeList(configs, next) as JsonObject[]),
  deleted: {},
};

/**
 * A2A 0.3 in the ProtoJSON of its Protocol Buffers definition, as HTTP+JSON of 0.3 uses it: another notation of the same
 * dialect, under the same name.
 */
export const dialect03Proto: Dialect = {
  ...json,
  push,
  decodeSend: params => json.decodeSend(objectOr(params, sendParams)),
  decodeGet: params => json.decodeGet(objectOr(params, withJsonFieldNames)),
  encodeTask: task => protoTask(json.encodeTask(task)),
  encodeEvent: event => protoResult(json.encodeEvent(event)),
  encodeSnapshot: task => json.encodeSnapshot(task).map(protoResult),
  encodeSendResult: result => protoResult(json.encodeSendResult(result)),
};
