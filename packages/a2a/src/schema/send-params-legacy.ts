import Type from 'typebox';
import { historyLength, id, metadata, names, optionalId, optionalObject } from './fields.ts';
import { PARTS_MAX } from './limits.ts';
import { authentication03, pushConfig } from './push-params.ts';
import { part } from './send-params-0.3.ts';

/** A message has no id of its own in this form; one that has is taken at its word. */
const message = Type.Object({
  messageId: optionalId,
  role: Type.Enum(['user', 'agent'], { reason: 'must be user or agent' }),
  parts: Type.Array(part, { minItems: 1, maxItems: PARTS_MAX }),
  metadata,
  extensions: names,
  referenceTaskIds: names,
});

/** Params of tasks/send and tasks/sendSubscribe: identical. `id` is the task's, made by the client (S4-8). */
export const sendParams = Type.Object({
  id,
  sessionId: optionalId,
  message,
  acceptedOutputModes: names,
  historyLength,
  pushNotification: optionalObject({ ...pushConfig, authentication: authentication03 }),
  metadata,
});
