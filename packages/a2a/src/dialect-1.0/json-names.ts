import { isObject, type JsonObject } from '../json-value.ts';

/**
 * The params under the JSON names of their fields. [A2A 1.0] 5.5 requires `historyLength` on the wire, but clients generated
 * from the Protocol Buffers definition send `history_length`, and a ProtoJSON parser accepts both
 * (https://protobuf.dev/programming-guides/json/). Otherwise the field would be silently ignored. Names inside client-owned
 * objects (metadata, data) stay. Where both names are present, the JSON name wins.
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

/** The fields of one object, not of nested ones, under their JSON names. */
export function withJsonFieldNames(fields: JsonObject): JsonObject {
  const named = Object.entries(fields).map(([name, value]) => [name.replaceAll(/_([a-z])/g, toUpper), value] as const);
  return { ...Object.fromEntries(named), ...fields };
}

const toUpper = (_match: string, letter: string): string => letter.toUpperCase();
