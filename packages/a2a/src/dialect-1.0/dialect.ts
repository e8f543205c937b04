import type { TSchema } from 'typebox';
import type { Dialect } from '../dialect.ts';
import { type JsonObject, present } from '../json-value.ts';
import type { PushConfig } from '../requests.ts';
import { decodeCancel, decodeSubscribe } from '../schema/decode-requests.ts';
import { cancelParams, subscribeParams } from '../schema/fields.ts';
import { createPush10, listPush10, onePush10 } from '../schema/push-params.ts';
import { sendParams } from '../schema/send-params-1.0.ts';
import { clientDialect10 } from './client-dialect.ts';
import { withJsonNames } from './decode.ts';
import { decodeCreatePush, decodeGet10, decodeListPush, decodeOnePush, decodeSend10, getParams10 } from './decode-requests.ts';
import { listParams } from './list-tasks.ts';

/** A2A 1.0. The canonical types are this dialect's JSON, so encoding is the identity. */
export const dialect10: Dialect = {
  ...clientDialect10,
  push: {
    decodeCreate: decodeCreatePush,
    decodeGet: decodeOnePush,
    decodeDelete: decodeOnePush,
    decodeList: decodeListPush,
    encode: encodePush,
    encodeList: (configs, nextPageToken) => ({ configs: configs.map(encodePush), nextPageToken }),
    deleted: {},
  },
  decodeSend: decodeSend10,
  decodeGet: decodeGet10,
  decodeCancel: params => decodeCancel(withJsonNames(params)),
  decodeSubscribe: params => decodeSubscribe(withJsonNames(params)),
  encodeTask: task => task,
  encodeMessage: message => message,
  encodeEvent: event => event,
  encodeSnapshot: task => [{ task }],
  frameText: JSON.stringify,
  encodeSendResult: result => result,
};

function encodePush({ id, taskId, url, authentication }: PushConfig): JsonObject {
  return { id, taskId, url, ...present({ authentication: authentication && { scheme: authentication.scheme } }) };
}

/** Schemas of the requests of A2A 1.0, by the names of their messages in a2a.proto, for documents that describe the API. */
export const REQUEST_SCHEMAS = {
  SendMessageRequest: sendParams,
  GetTaskRequest: getParams10,
  ListTasksRequest: listParams,
  CancelTaskRequest: cancelParams,
  SubscribeToTaskRequest: subscribeParams,
  TaskPushNotificationConfig: createPush10,
  GetTaskPushNotificationConfigRequest: onePush10,
  ListTaskPushNotificationConfigsRequest: listPush10,
  DeleteTaskPushNotificationConfigRequest: onePush10,
} as const satisfies Record<string, TSchema>;
