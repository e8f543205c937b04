import { type JsonObject, metadata, present, text, texts } from '../json-value.ts';
import type { SendRequest } from '../requests.ts';
import { sendParams } from '../schema/send-params-legacy.ts';
import { paramsCheck } from '../schema/validate.ts';
import { decodeMessage } from './decode.ts';
import { decodeOnlyPush } from './push.ts';

const check = paramsCheck(sendParams);

/** Params of tasks/send and tasks/sendSubscribe. Both wait for the end or a question (S3-4); the door does not where a webhook is told instead (S3-33). */
export function decodeSend(params: unknown): SendRequest {
  check(params);
  const { id, sessionId, message, historyLength, acceptedOutputModes, pushNotification, metadata: own } = params as JsonObject;
  const { taskId: _task, contextId: _context, ...said } = decodeMessage(message as JsonObject);
  return {
    message: { ...said, ...present({ contextId: text(sessionId) }) },
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
