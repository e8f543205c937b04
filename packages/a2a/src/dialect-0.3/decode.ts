import type { DecodedEvent } from '../dialect.ts';
import { isObject, type JsonObject, text } from '../json-value.ts';
import { objectReader } from '../object-reader.ts';
import { decodePart } from './part.ts';
import { decodeState } from './state.ts';

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
