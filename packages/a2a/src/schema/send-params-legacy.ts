import { historyLength, id, metadata, names, optionalId, optionalObject } from './fields.ts';
import { PARTS_MAX } from './limits.ts';
import { authentication03, pushConfig } from './push-params.ts';
import { part } from './send-params-0.3.ts';
import { Type } from './type.ts';

/** Messages of this form have no id, but one that is sent anyway is used. */
const message = Type.Object({
  messageId: optionalId,
  role: Type.Enum(['user', 'agent'], { reason: 'must be user or agent' }),
  parts: Type.Array(part, { minItems: 1, maxItems: PARTS_MAX }),
  metadata,
  extensions: names,
  referenceTaskIds: names,
});

/** Params of tasks/send and tasks/sendSubscribe. `id` is the task's, chosen by the client. */
export const sendParams = Type.Object({
  id,
  sessionId: optionalId,
  message,
  acceptedOutputModes: names,
  historyLength,
  pushNotification: optionalObject({ ...pushConfig, authentication: authentication03 }),
  metadata,
});
