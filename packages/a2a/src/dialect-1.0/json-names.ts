import { isObject, type JsonObject } from '../json-value.ts';

/**
 * The params with the JSON names of their fields. [A2A 1.0] 5.5 wants `historyLength` on the wire, and clients made from the Protocol Buffers definition send `history_length`:
 * a ProtoJSON parser takes both (https://protobuf.dev/programming-guides/json/). Left alone, the field would be ignored in silence, and a page or a limit with it.
 * What a client owns (metadata, data) keeps its names. Where both are there, the JSON name counts.
 */
export function withJsonNames(params: unknown): unknown {
  if (!isObject(params)) return params;
  const renamed = withJsonFieldNames(params);
  for (const member of ['message', 'configuration']) {
    if (isObject(renamed[member])) renamed[member] = withJsonFieldNames(renamed[member]);
  }
  const { message } = renamed;
  if (isObject(message) && Array.isArray(message.parts)) {
    message.parts = message.parts.map(part => (isObject(part) ? withJsonFieldNames(part) : part));
  }
  return renamed;
}

/** The fields of one object, without those inside them, under their JSON names. */
export function withJsonFieldNames(fields: JsonObject): JsonObject {
  const named = Object.entries(fields).map(([name, value]) => [name.replaceAll(/_([a-z])/g, toUpper), value] as const);
  return { ...Object.fromEntries(named), ...fields };
}

const toUpper = (_match: string, letter: string): string => letter.toUpperCase();
