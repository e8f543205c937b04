import type { Dialect } from '../dialect.ts';
import { pushOf } from '../dialect-0.3/push.ts';
import { present } from '../json-value.ts';
import { decodeCancel, decodeGet, decodeSubscribe } from '../schema/decode-requests.ts';
import { decodeEvent } from './decode.ts';
import { encodeEvent, encodeMessage, encodeSnapshot, encodeTask, frameText } from './encode.ts';
import { pushLegacy } from './push.ts';
import { decodeSend } from './send.ts';

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
  push: pushLegacy,
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
  encodeSend: ({ message, ...request }) => {
    const { contextId, taskId, ...content } = message;
    return {
      id: request.ownTaskId ?? taskId ?? '',
      message: encodeMessage(content),
      ...present({
        sessionId: contextId,
        historyLength: request.historyLength,
        acceptedOutputModes: request.acceptedOutputModes,
        pushNotification: request.push && pushOf(request.push),
        metadata: request.metadata,
      }),
    };
  },
  decodeEvent,
};
