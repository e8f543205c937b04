import type { TSchema } from 'typebox';
import { flag, historyLength, id, messageMembers, metadata, name, names, nullableBase64, optionalObject } from './fields.ts';
import { PARTS_MAX } from './limits.ts';
import { authentication03, pushConfig } from './push-params.ts';
import { Type } from './type.ts';

const file = Type.Object(
  { bytes: nullableBase64, uri: Type.Optional(Type.String({ nullable: true })), name, mimeType: name },
  {
    oneOf: ['bytes', 'uri'].map(member => ({ required: [member], properties: { [member]: { type: 'string' } } })),
    reason: 'must have exactly one of bytes, uri',
  },
);

/** The discriminator is `kind`, or `type` in older clients, or the only content member. */
function form(member: 'text' | 'file' | 'data', content: TSchema, types: string[]): TSchema {
  return Type.Object({
    kind: Type.Optional(Type.Enum([member])),
    type: Type.Optional(Type.Enum([member, ...types])),
    [member]: content,
    metadata,
  });
}

/** Shared with the legacy form. */
export const part = Type.Unsafe({
  type: 'object',
  oneOf: [
    form('text', Type.String(), ['text/plain']),
    form('file', file, []),
    form('data', Type.Unknown(), ['application/json']),
  ],
  reason: 'must be a text, file or data part; bytes of a file are base64',
});

const message = Type.Object({
  kind: Type.Optional(Type.Enum(['message'], { reason: 'must be message' })),
  messageId: id,
  role: Type.Enum(['user', 'agent'], { reason: 'must be user or agent' }),
  parts: Type.Array(part, { minItems: 1, maxItems: PARTS_MAX }),
  ...messageMembers,
});

/** Params of message/send and message/stream. */
export const sendParams = Type.Object({
  message,
  configuration: optionalObject({
    acceptedOutputModes: names,
    historyLength,
    blocking: flag,
    pushNotificationConfig: optionalObject({ ...pushConfig, authentication: authentication03 }),
  }),
  metadata,
});
