import type { DecodedEvent } from '../dialect.ts';
import { decodeState } from '../dialect-0.3/state.ts';
import { isObject, type JsonObject, list, text } from '../json-value.ts';
import { objectReader } from '../object-reader.ts';
import { decodePart } from './part.ts';

const reader = objectReader({ part: decodePart, state: decodeState, isUser: role => role === 'user' });

export const decodeMessage = reader.message;

/** Decodes a result of a stream, bare or not, or a task, by `type` or by its members. Never throws. */
export function decodeEvent(result: unknown): DecodedEvent {
  if (!isObject(result)) return { unknown: 'not an object' };
  switch (text(result.type) ?? impliedType(result)) {
    case 'task':
      return reader.task({ ...canonical(result), artifacts: artifactsOf(result) });
    case 'message':
      return { event: { message: decodeMessage(result) } };
    case 'taskStatusUpdate':
      return reader.statusUpdate(canonical(result));
    case 'taskArtifactUpdate':
      return isObject(result.artifact) ? artifactUpdate(result, result.artifact) : { unknown: 'no artifact' };
    default:
      return { unknown: 'unknown kind' };
  }
}

function impliedType(result: JsonObject): string | undefined {
  if (isObject(result.artifact)) return 'taskArtifactUpdate';
  if (isObject(result.status)) return result.final === undefined ? 'task' : 'taskStatusUpdate';
  return Array.isArray(result.parts) && text(result.role) !== undefined ? 'message' : undefined;
}

function canonical(value: JsonObject): JsonObject {
  return { ...value, taskId: value.taskId ?? value.id, contextId: value.sessionId };
}

function artifactsOf(task: JsonObject): unknown {
  return Array.isArray(task.artifacts) ? list(task.artifacts).filter(isObject).map(withId) : undefined;
}

/** Artifacts of this form are identified by their index. */
function withId(artifact: JsonObject, place?: number): JsonObject {
  const { artifactId, index = place ?? 0 } = artifact;
  return text(artifactId) === undefined ? { ...artifact, artifactId: String(index) } : artifact;
}

function artifactUpdate(result: JsonObject, artifact: JsonObject): DecodedEvent {
  const { append, lastChunk } = artifact;
  return reader.artifactUpdate({ ...canonical(result), artifact: withId(artifact), append, lastChunk });
}
