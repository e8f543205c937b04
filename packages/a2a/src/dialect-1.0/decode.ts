import type { DecodedEvent } from '../dialect.ts';
import { isObject, type JsonObject, metadata, present, text } from '../json-value.ts';
import { objectReader } from '../object-reader.ts';
import { type Part, TASK_STATES } from '../types.ts';

const reader = objectReader({
  part: decodePart,
  state: value => TASK_STATES.find(state => state === value),
  isUser: role => role === 'ROLE_USER',
});

export const decodeMessage = reader.message;

function decodePart(value: unknown): Part {
  const content = isObject(value) ? contentOf(value) : undefined;
  // A value that is not a part of this dialect is kept as data.
  if (!isObject(value) || content === undefined) return { data: value };
  const { metadata: given, filename, mediaType } = value;
  if (given === undefined && filename === undefined && mediaType === undefined) return content;
  return { ...content, ...present({ metadata: metadata(given), filename: text(filename), mediaType: text(mediaType) }) };
}

function contentOf(part: JsonObject): Part | undefined {
  if (typeof part.text === 'string') return { text: part.text };
  if (typeof part.raw === 'string') return { raw: part.raw };
  if (typeof part.url === 'string') return { url: part.url };
  return 'data' in part ? { data: part.data } : undefined;
}

/** Decodes one StreamResponse by its member. */
export function decodeEvent(result: unknown): DecodedEvent {
  if (!isObject(result)) return { unknown: 'not an object' };
  const { task, message, statusUpdate, artifactUpdate } = result;
  if (isObject(task)) return reader.task(task);
  if (isObject(message)) return { event: { message: decodeMessage(message) } };
  if (isObject(statusUpdate)) return reader.statusUpdate(statusUpdate);
  if (isObject(artifactUpdate)) return reader.artifactUpdate(artifactUpdate);
  return { unknown: 'unknown kind' };
}

/**
 * The params under the JSON names of their fields. [A2A 1.0] 5.5 requires `historyLength` on the wire, but clients generated from the
 * Protocol Buffers definition send `history_length`, and a ProtoJSON parser accepts both (https://protobuf.dev/programming-guides/json/).
 * Otherwise the field would be silently ignored. Names inside client-owned objects (metadata, data) stay unchanged. If both names are
 * present, the JSON name takes precedence.
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
