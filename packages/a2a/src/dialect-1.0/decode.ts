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
  const { metadata: own, filename, mediaType } = value;
  if (own === undefined && filename === undefined && mediaType === undefined) return content;
  return { ...content, ...present({ metadata: metadata(own), filename: text(filename), mediaType: text(mediaType) }) };
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
