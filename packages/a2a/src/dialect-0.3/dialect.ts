import type { Dialect } from '../dialect.ts';
import { present } from '../json-value.ts';
import { decodeCancel, decodeGet, decodeSend, decodeSubscribe } from '../schema/decode-requests.ts';
import { sendParams } from '../schema/send-params-0.3.ts';
import { paramsCheck } from '../schema/validate.ts';
import { decodeEvent, decodeMessage } from './decode.ts';
import { encodeEvent, encodeMessage, encodeTask } from './encode.ts';
import { decodePush, push03, pushOf } from './push.ts';

const sendNotation = {
  check: paramsCheck(sendParams),
  message: decodeMessage,
  // The 0.3 specification leaves the default open; both official SDKs block unless told otherwise.
  blocking: (configuration: { blocking?: unknown }) => configuration.blocking !== false,
  push: (configuration: { pushNotificationConfig?: unknown }) => decodePush(configuration.pushNotificationConfig),
};

/** A2A 0.3, which clients and agents of 0.2 also speak on these methods. */
export const dialect03: Dialect = {
  name: '0.3',
  methods: {
    send: 'message/send',
    stream: 'message/stream',
    get: 'tasks/get',
    cancel: 'tasks/cancel',
    subscribe: 'tasks/resubscribe',
    createPush: 'tasks/pushNotificationConfig/set',
    getPush: 'tasks/pushNotificationConfig/get',
    listPush: 'tasks/pushNotificationConfig/list',
    deletePush: 'tasks/pushNotificationConfig/delete',
    extendedCard: 'agent/getAuthenticatedExtendedCard',
  },
  push: push03,
  decodeSend: params => decodeSend(params, sendNotation),
  decodeGet,
  decodeCancel,
  decodeSubscribe,
  encodeTask,
  encodeMessage,
  encodeEvent,
  encodeSnapshot: task => [encodeTask(task)],
  encodeSendResult: encodeEvent,
  encodeSend: request => ({
    message: encodeMessage(request.message),
    configuration: present({
      blocking: request.blocking,
      historyLength: request.historyLength,
      acceptedOutputModes: request.acceptedOutputModes,
      pushNotificationConfig: request.push && pushOf(request.push),
    }),
    ...present({ metadata: request.metadata }),
  }),
  decodeEvent,
};
