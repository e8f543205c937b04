import type { DecodedEvent } from '../dialect.ts';
import { isObject, type JsonObject, metadata, object, present, text } from '../json-value.ts';
import { objectReader } from '../object-reader.ts';
import type { Part, TaskState } from '../types.ts';
import { DATA_WRAPPED, FILENAME, MEDIA_TYPE, STATES } from './encode.ts';

const reader = objectReader({
  part: decodePart,
  state: decodeState,
  isUser: role => role === 'user' || role === 'ROLE_USER',
});

export const decodeMessage = reader.message;

/** Decodes one result of a stream by `kind`, by `type` (older), or by its members where they are unambiguous. */
export function decodeEvent(result: unknown): DecodedEvent {
  if (!isObject(result)) return { unknown: 'not an object' };
  switch (text(result.kind) ?? text(result.type) ?? impliedKind(result)) {
    case 'task':
      return reader.task(result);
    case 'message':
      return { event: { message: decodeMessage(result) } };
    case 'status-update':
    case 'taskStatusUpdate':
      return reader.statusUpdate(result);
    case 'artifact-update':
    case 'taskArtifactUpdate':
      return reader.artifactUpdate(result);
    default:
      return { unknown: 'unknown kind' };
  }
}

function impliedKind(result: JsonObject): string | undefined {
  if (isObject(result.artifact)) return 'artifact-update';
  if (isObject(result.status)) return text(result.id) !== undefined && result.final === undefined ? 'task' : 'status-update';
  return Array.isArray(result.parts) && text(result.role) !== undefined ? 'message' : undefined;
}

/** Decodes by `kind`, `type` (older), or the only content member. A value that is not a part of this dialect is kept as data. */
export function decodePart(value: unknown): Part {
  if (!isObject(value)) return { data: value };
  // Fast case: nearly every token has this form.
  if (value.kind === 'text' && typeof value.text === 'string' && value.metadata === undefined) return { text: value.text };
  const kind = text(value.kind) ?? text(value.type);
  const file = object(value.file);
  if (file !== undefined && kind !== 'text' && kind !== 'data') return decodeFile(value, file);
  const { [MEDIA_TYPE]: mediaType, [FILENAME]: filename, [DATA_WRAPPED]: wrapped, ...rest } = metadata(value.metadata) ?? {};
  const extra = present({ metadata: metadata(rest), mediaType: text(mediaType), filename: text(filename) });
  if (kind === 'text' || (kind !== 'data' && typeof value.text === 'string')) {
    return { text: typeof value.text === 'string' ? value.text : '', ...extra };
  }
  if (!('data' in value)) return { data: value };
  const data = wrapped === true && isObject(value.data) && 'value' in value.data ? value.data.value : value.data;
  return { data, ...extra };
}

function decodeFile(part: JsonObject, file: JsonObject): Part {
  const { bytes, uri, name, mimeType } = file;
  const content = typeof bytes === 'string' ? { raw: bytes } : typeof uri === 'string' ? { url: uri } : undefined;
  if (content === undefined) return { data: part };
  return { ...content, ...present({ metadata: metadata(part.metadata), filename: text(name), mediaType: text(mimeType) }) };
}

const CANONICAL = new Map<string, TaskState>(Object.entries(STATES).map(([state, wire]) => [wire, state as TaskState]));

/**
 * Accepts the spellings that are in use: `input-required`, `input_required`, `cancelled` with two L (0.3 gRPC and REST), `TASK_STATE_…`.
 * Returns undefined for `unknown`, which 0.3 defines but no agent may send, and for everything else.
 */
export function decodeState(value: unknown): TaskState | undefined {
  if (typeof value !== 'string') return undefined;
  const state = CANONICAL.get(value);
  if (state !== undefined) return state;
  const wire = value
    .toLowerCase()
    .replace(/^task_state_/, '')
    .replaceAll('_', '-')
    .replace('cancelled', 'canceled');
  return CANONICAL.get(wire);
}
