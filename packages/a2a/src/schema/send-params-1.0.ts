import {
  anything,
  flag,
  generation,
  historyLength,
  id,
  messageMembers,
  metadata,
  name,
  names,
  nullableBase64,
  optionalObject,
} from './fields.ts';
import { PARTS_MAX } from './limits.ts';
import { authentication10, pushConfig } from './push-params.ts';
import { Type } from './type.ts';

const content = Type.Optional(Type.String({ nullable: true }));
const unset = { type: 'null' };
const isSet = (member: string) => ({ required: [member], properties: { [member]: { not: unset } } });

/** Null means "not set", but is data if nothing else is set. */
const part = Type.Object(
  { text: content, raw: nullableBase64, url: content, data: anything, metadata, filename: name, mediaType: name },
  {
    oneOf: [
      ...['text', 'raw', 'url'].map(isSet),
      { required: ['data'], anyOf: [isSet('data'), { properties: { text: unset, raw: unset, url: unset } }] },
    ],
    reason: 'must have exactly one of text, raw, url, data',
  },
);

const message = Type.Object({
  messageId: id,
  role: Type.Enum(['ROLE_USER', 'ROLE_AGENT'], { reason: 'must be ROLE_USER or ROLE_AGENT' }),
  parts: Type.Array(part, { minItems: 1, maxItems: PARTS_MAX }),
  ...messageMembers,
});

/** Params of SendMessage and SendStreamingMessage. */
export const sendParams = Type.Object({
  message,
  configuration: optionalObject({
    acceptedOutputModes: names,
    historyLength,
    returnImmediately: flag,
    // These two are from the draft 1.1 of the specification.
    ifGenerationMatch: generation,
    timelineLength: historyLength,
    taskPushNotificationConfig: optionalObject({ ...pushConfig, authentication: authentication10 }),
  }),
  metadata,
});
