import type { Dialect } from '../dialect.ts';
import { present } from '../json-value.ts';
import { decodeCancel, decodeGet, decodeSend, decodeSubscribe } from '../schema/decode-requests.ts';
import { sendParams } from '../schema/send-params-1.0.ts';
import { paramsCheck } from '../schema/validate.ts';
import { decodeEvent, decodeMessage } from './decode.ts';
import { withJsonNames } from './json-names.ts';
import { decodePush, push10 } from './push.ts';

const sendNotation = {
  check: paramsCheck(sendParams),
  message: decodeMessage,
  blocking: (configuration: { returnImmediately?: unknown }) => configuration.returnImmediately !== true,
  push: (configuration: { taskPushNotificationConfig?: unknown }) => decodePush(configuration.taskPushNotificationConfig),
};

/** A2A 1.0. The canonical types are this dialect's JSON, so encoding is the identity. */
export const dialect10: Dialect = {
  name: '1.0',
  methods: {
    send: 'SendMessage',
    stream: 'SendStreamingMessage',
    get: 'GetTask',
    list: 'ListTasks',
    cancel: 'CancelTask',
    subscribe: 'SubscribeToTask',
    createPush: 'CreateTaskPushNotificationConfig',
    getPush: 'GetTaskPushNotificationConfig',
    listPush: 'ListTaskPushNotificationConfigs',
    deletePush: 'DeleteTaskPushNotificationConfig',
    extendedCard: 'GetExtendedAgentCard',
  },
  push: push10,
  decodeSend: params => decodeSend(withJsonNames(params), sendNotation),
  decodeGet: params => decodeGet(withJsonNames(params)),
  decodeCancel: params => decodeCancel(withJsonNames(params)),
  decodeSubscribe: params => decodeSubscribe(withJsonNames(params)),
  encodeTask: task => task,
  encodeMessage: message => message,
  encodeEvent: event => event,
  encodeSnapshot: task => [{ task }],
  encodeSendResult: result => result,
  encodeSend: request => ({
    message: request.message,
    configuration: present({
      returnImmediately: request.blocking ? undefined : true,
      historyLength: request.historyLength,
      acceptedOutputModes: request.acceptedOutputModes,
      taskPushNotificationConfig: request.push,
    }),
    ...present({ metadata: request.metadata }),
  }),
  decodeEvent,
};
