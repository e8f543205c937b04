import type { Dialect } from '../dialect.ts';
import { decodeCancel, decodeGet, decodeSend, decodeSubscribe } from '../schema/decode-requests.ts';
import { clientDialect03 } from './client-dialect.ts';
import { decodeCreatePush, decodeDeletePush, decodeGetPush, decodeListPush, sendNotation } from './decode-requests.ts';
import { encodeEvent, encodeMessage, encodePush, encodeTask } from './encode.ts';

/** A2A 0.3, which clients and agents of 0.2 also speak on these methods. */
export const dialect03: Dialect = {
  ...clientDialect03,
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
};
