import type { DecodedEvent } from './dialect.ts';
import { isObject, type JsonObject, list, metadata, object, present, text, texts } from './json-value.ts';
import type { Artifact, Int64, Message, Part, Task, TaskState, TaskStatus, TimelineEntry } from './types.ts';

/** Differences between dialects inside objects whose members have the same names. */
type Notation = {
  part(value: unknown): Part;
  /** Undefined for a value that is not a state of the dialect. */
  state(value: unknown): TaskState | undefined;
  isUser(role: unknown): boolean;
};

type ObjectReader = {
  message(value: JsonObject): Message;
  task(value: JsonObject): DecodedEvent;
  statusUpdate(value: JsonObject): DecodedEvent;
  artifactUpdate(value: JsonObject): DecodedEvent;
};

/**
 * Reads objects of remote agents. Absent, empty or mistyped members are left out, unknown ones ignored, and nothing throws:
 * real agents omit contextId, description, lastChunk and message.
 */
export function objectReader(notation: Notation): ObjectReader {
  const message = (value: JsonObject): Message => ({
    messageId: text(value.messageId) ?? '',
    role: notation.isUser(value.role) ? 'ROLE_USER' : 'ROLE_AGENT',
    parts: list(value.parts).map(notation.part),
    ...present({
      contextId: text(value.contextId),
      taskId: text(value.taskId),
      metadata: metadata(value.metadata),
      extensions: texts(value.extensions),
      referenceTaskIds: texts(value.referenceTaskIds),
    }),
  });
  const artifact = (value: JsonObject): Artifact => ({
    artifactId: text(value.artifactId) ?? '',
    parts: list(value.parts).map(notation.part),
    ...present({
      name: text(value.name),
      description: text(value.description),
      metadata: metadata(value.metadata),
      extensions: texts(value.extensions),
    }),
  });
  const taskArtifact = (value: JsonObject): Artifact => ({
    ...artifact(value),
    ...present({ startGeneration: int64(value.startGeneration), endGeneration: int64(value.endGeneration) }),
  });
  const statusOf = (value: JsonObject): TaskStatus | undefined => {
    const status = object(value.status);
    const state = notation.state(status?.state);
    if (status === undefined || state === undefined) return undefined;
    const statusMessage = metadata(status.message);
    return { state, ...present({ message: statusMessage && message(statusMessage), timestamp: text(status.timestamp) }) };
  };
  /** Undefined for an entry of a kind that the reader does not know. Clients skip such entries. */
  const timelineEntry = (value: JsonObject): TimelineEntry | undefined => {
    const status = statusOf(value);
    const generation = int64(value.generation) ?? '0';
    if (status !== undefined) return { status, generation };
    return isObject(value.message) ? { message: message(value.message), generation } : undefined;
  };
  const taskWith = (value: JsonObject, status: TaskStatus): Task => ({
    id: text(value.id) ?? '',
    contextId: text(value.contextId) ?? '',
    status,
    ...present({
      artifacts: Array.isArray(value.artifacts) ? value.artifacts.filter(isObject).map(taskArtifact) : undefined,
      history: Array.isArray(value.history) ? value.history.filter(isObject).map(message) : undefined,
      metadata: metadata(value.metadata),
      generation: int64(value.generation),
      timeline: Array.isArray(value.timeline)
        ? value.timeline.filter(isObject).flatMap(entry => timelineEntry(entry) ?? [])
        : undefined,
    }),
  });
  const envelope = (value: JsonObject) => ({
    taskId: text(value.taskId) ?? '',
    contextId: text(value.contextId) ?? '',
    ...present({ metadata: metadata(value.metadata), generation: int64(value.generation) }),
  });
  return {
    message,
    task: value => {
      const status = statusOf(value);
      return status === undefined ? { unknown: 'unknown state' } : { event: { task: taskWith(value, status) } };
    },
    statusUpdate: value => {
      const status = statusOf(value);
      return status === undefined ? { unknown: 'unknown state' } : { event: { statusUpdate: { ...envelope(value), status } } };
    },
    artifactUpdate: value => {
      if (!isObject(value.artifact)) return { unknown: 'no artifact' };
      const flags = { append: value.append === true, lastChunk: value.lastChunk === true };
      return { event: { artifactUpdate: { ...envelope(value), artifact: artifact(value.artifact), ...flags } } };
    },
  };
}

/** An int64 in ProtoJSON, which some writers write as a number. 0 is the default and counts as absent. */
function int64(value: unknown): Int64 | undefined {
  const digits = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : text(value);
  return digits !== undefined && /^[1-9]\d{0,15}$/.test(digits) ? digits : undefined;
}
