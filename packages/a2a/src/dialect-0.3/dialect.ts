import type { Dialect } from '../dialect.ts';
import { decodeCancel, decodeGet, decodeSend, decodeSubscribe } from '../schema/decode-requests.ts';
import { decodeCreatePush, decodeDeletePush, decodeEvent, decodeGetPush, decodeListPush, sendNotation } from './decode.ts';
import { encodeEvent, encodeMessage, encodePush, encodeSend, encodeTask } from './encode.ts';

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
  // 0.2 has one configuration per task, without an id, and neither `list` nor `delete` before 0.2.5.
  push: {
    decodeCreate: decodeCreatePush,
    decodeGet: decodeGetPush,
    decodeList: decodeListPush,
    decodeDelete: decodeDeletePush,
    encode: encodePush,
    encodeList: configs => configs.map(encodePush),
    deleted: null,
  },
  decodeSend: params => decodeSend(params, sendNotation),
  decodeGet,
  decodeCancel,
  decodeSubscribe,
  encodeTask,
  encodeMessage,
  encodeEvent,
  encodeSnapshot: task => [encodeTask(task)],
  frameText: JSON.stringify,
  encodeSendResult: encodeEvent,
  encodeSend,
  decodeEvent,
};
