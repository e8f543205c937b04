import { type JsonObject, metadata, present, text, texts } from '../json-value.ts';
import type { SendRequest } from '../requests.ts';
import { sendParams } from '../schema/send-params-legacy.ts';
import { paramsCheck } from '../schema/validate.ts';
import { decodeMessage } from './decode.ts';
import { decodeOnlyPush } from './push.ts';

const check = paramsCheck(sendParams);

/**
 * Params of tasks/send and tasks/sendSubscribe. Both block until the turn ends, except a send whose task has a webhook (S3-33).
 */
export function decodeSend(params: unknown): SendRequest {
  check(params);
  const { id, sessionId, message, historyLength, acceptedOutputModes, pushNotification, metadata: own } = params as JsonObject;
  const { taskId: _task, contextId: _context, ...content } = decodeMessage(message as JsonObject);
  return {
    message: { ...content, ...present({ contextId: text(sessionId) }) },
    ownTaskId: id as string,
    blocking: true,
    ...present({
      metadata: metadata(own),
      historyLength: typeof historyLength === 'number' ? historyLength : undefined,
      acceptedOutputModes: texts(acceptedOutputModes),
      push: decodeOnlyPush(pushNotification),
    }),
  };
}
