import type { Dialect } from '../dialect.ts';
import { dialect03 } from '../dialect-0.3/dialect.ts';
import { decodeCancel, decodeGet, decodeSubscribe } from '../schema/decode-requests.ts';
import { decodeCreatePush, decodeEvent, decodeGetPush, decodeSend } from './decode.ts';
import { encodeEvent, encodeMessage, encodePush, encodeSend, encodeSnapshot, encodeTask, frameText } from './encode.ts';

/** The form of April 2025, before 0.2: `tasks/*` methods, task ids chosen by clients, sessions, `type` on parts. */
export const dialectLegacy: Dialect = {
  name: 'legacy',
  methods: {
    send: 'tasks/send',
    stream: 'tasks/sendSubscribe',
    get: 'tasks/get',
    cancel: 'tasks/cancel',
    subscribe: 'tasks/resubscribe',
    createPush: 'tasks/pushNotification/set',
    getPush: 'tasks/pushNotification/get',
  },
  // One configuration per task, without an id of its own.
  push: { ...dialect03.push, decodeCreate: decodeCreatePush, decodeGet: decodeGetPush, encode: encodePush },
  decodeSend,
  decodeGet,
  decodeCancel,
  decodeSubscribe,
  encodeTask,
  encodeMessage,
  encodeEvent,
  encodeSnapshot,
  frameText,
  encodeSendResult: result => ('task' in result ? encodeTask(result.task) : encodeMessage(result.message)),
  encodeSend,
  decodeEvent,
};
