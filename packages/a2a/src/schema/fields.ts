/*
 * Fields of both dialects. Optional ones also accept null, which typed clients write for "not set"; ids may be empty, which
 * ProtoJSON writes for the same. Unknown members are allowed and ignored ([A2A 1.0] 5.7).
 */

import type { TObject, TProperties } from 'typebox';
import { GENERATION_MAX, HISTORY_LENGTH_MAX, ID_CHARS_MAX, LIST_ITEMS_MAX, NAME_CHARS_MAX } from './limits.ts';
import { Type } from './type.ts';

const nullable = { nullable: true } as const;

// Excludes control characters: they would break the header with the message id (Nats-Msg-Id).
const ID_PATTERN = '^[^\\u0000-\\u001f\\u007f]*$';

export const id = Type.String({
  minLength: 1,
  maxLength: ID_CHARS_MAX,
  pattern: ID_PATTERN,
  reason: `must be 1 to ${ID_CHARS_MAX} characters without control characters`,
});
export const optionalId = Type.Optional(
  Type.String({
    maxLength: ID_CHARS_MAX,
    pattern: ID_PATTERN,
    reason: `must be at most ${ID_CHARS_MAX} characters without control characters`,
    ...nullable,
  }),
);
export const name = Type.Optional(Type.String({ maxLength: NAME_CHARS_MAX, ...nullable }));
export const metadata = Type.Optional(Type.Unsafe<Record<string, unknown> | null>({ type: 'object', ...nullable }));
export const names = Type.Optional(
  Type.Array(Type.String({ maxLength: NAME_CHARS_MAX }), { maxItems: LIST_ITEMS_MAX, ...nullable }),
);
export const historyLength = Type.Optional(Type.Integer({ minimum: 0, maximum: HISTORY_LENGTH_MAX, ...nullable }));
/** int64 as ProtoJSON reads it: a number or a decimal string. Generations begin with 1, and 0 is before all of them. */
export const generation = Type.Optional(
  Type.Unsafe<number | string | null>({
    type: ['integer', 'string'],
    minimum: 0,
    maximum: GENERATION_MAX,
    pattern: '^[0-9]{1,15}$',
    ...nullable,
    reason: `must be a whole number from 0 to ${GENERATION_MAX}`,
  }),
);
export const flag = Type.Optional(Type.Boolean(nullable));
/** Base64, standard or URL-safe alphabet. */
export const nullableBase64 = Type.Optional(
  Type.String({ pattern: '^[A-Za-z0-9+/_-]*={0,2}$', reason: 'must be base64', ...nullable }),
);
export const anything = Type.Optional(Type.Unknown());

/** Members that a message has in 1.0 and in 0.3. */
export const messageMembers = {
  contextId: optionalId,
  taskId: optionalId,
  metadata,
  extensions: names,
  referenceTaskIds: names,
};

export function optionalObject<T extends TProperties>(properties: T): ReturnType<typeof Type.Optional<TObject<T>>> {
  return Type.Optional(Type.Object(properties, nullable));
}

export const getParams = Type.Object({ id, historyLength });
export const cancelParams = Type.Object({ id, metadata });
export const subscribeParams = Type.Object({ id });
