import { encodePart as encodePart03, encodeState, isFinal, pushOf, shownPush } from '../dialect-0.3/encode.ts';
import { type JsonObject, present } from '../json-value.ts';
import type { PushConfig, SendRequest } from '../requests.ts';
import type { Artifact, Message, Part, StreamResponse, Task, TaskStatus } from '../types.ts';
import { legacyMetadata } from './origin.ts';
import { clientTaskId } from './task-id.ts';

/**
 * Encodes the JSON of April 2025: `type` on parts, `sessionId`, the index and flags of an artifact inside it. A result of a stream serves
 * two kinds of clients: those that follow the specification read `id`, `status`, `final`, `artifact`; others read `type` and `taskId`
 * (C-7). `artifactId` and `messageId` are additions, so that nothing is lost. Task ids are those of the client.
 */

export function encodeMessage(message: Message): JsonObject {
  const { messageId, role, parts, taskId, ...rest } = message;
  const ids = present({ messageId, taskId: taskId && clientTaskId(taskId) });
  return { role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(encodePart), ...ids, ...rest };
}

function encodeArtifact({ artifactId, name, description, parts, ...rest }: Artifact, index: number): JsonObject {
  return { ...present({ name, description }), parts: parts.map(encodePart), ...rest, artifactId, index };
}

function encodeStatus({ state, message, timestamp }: TaskStatus): JsonObject {
  return { state: encodeState(state), ...present({ message: message && encodeMessage(message), timestamp }) };
}

export function encodeTask(task: Task): JsonObject {
  const { id, contextId, status, history, artifacts } = task;
  return {
    id: clientTaskId(id),
    sessionId: contextId,
    status: encodeStatus(status),
    ...present({
      artifacts: artifacts?.map(encodeArtifact),
      history: history?.map(encodeMessage),
      metadata: legacyMetadata(task),
    }),
  };
}

type Ids = { taskId: string; contextId: string };

function encodeIds({ taskId, contextId }: Ids): JsonObject {
  const id = clientTaskId(taskId);
  return { id, sessionId: contextId, taskId: id };
}

function encodeStatusUpdate({
  taskId,
  contextId,
  status,
  ...rest
}: Ids & { status: TaskStatus; metadata?: JsonObject }): JsonObject {
  return {
    type: 'taskStatusUpdate',
    ...encodeIds({ taskId, contextId }),
    status: encodeStatus(status),
    final: isFinal(status),
    ...rest,
  };
}

type ArtifactUpdate = Ids & { artifact: Artifact; append?: boolean; lastChunk?: boolean; metadata?: JsonObject };

function encodeArtifactUpdate(
  { taskId, contextId, artifact, append, lastChunk, ...rest }: ArtifactUpdate,
  index: number,
): JsonObject {
  const ids = encodeIds({ taskId, contextId });
  const flags = { append: append === true, lastChunk: lastChunk === true };
  return { type: 'taskArtifactUpdate', ...ids, artifact: { ...encodeArtifact(artifact, index), ...flags }, ...rest };
}

/** This form has no event for a task: its state is sent instead (C-8). */
export function encodeEvent(event: StreamResponse, artifactIndex = 0): JsonObject {
  if ('task' in event) return stateOf(event.task);
  if ('message' in event) return encodeMessage(event.message);
  if ('statusUpdate' in event) return encodeStatusUpdate(event.statusUpdate);
  return encodeArtifactUpdate(event.artifactUpdate, artifactIndex);
}

function stateOf({ id, contextId, status }: Task): JsonObject {
  return encodeStatusUpdate({ taskId: id, contextId, status });
}

/** The task as events: each artifact whole, then the state. The state is last because it may end the stream. */
export function encodeSnapshot(task: Task): JsonObject[] {
  const { id, contextId, artifacts = [] } = task;
  const updates = artifacts.map((artifact, index) => encodeArtifactUpdate({ taskId: id, contextId, artifact }, index));
  return [...updates, stateOf(task)];
}

/**
 * The frame also has the members of the result next to `result` (C-7). The shared part is serialized only once, because it contains the
 * text of the answer.
 */
export function frameText({ type, id, sessionId, final, ...bare }: JsonObject): string {
  const members = JSON.stringify({ type, id, sessionId, final });
  const shared = JSON.stringify(bare).slice(1, -1);
  const result = `${members.slice(0, -1)}${members.length > 2 && shared !== '' ? ',' : ''}${shared}}`;
  return typeof type === 'string' ? `${result},"type":${JSON.stringify(type)},${shared}` : result;
}

/** The part of 0.3 with `type` instead of `kind`. As in 0.3, values that it cannot express are stored in the part's metadata. */
function encodePart(part: Part): JsonObject {
  const { kind, ...rest } = encodePart03(part);
  return { type: kind, ...rest };
}

export function encodeSend({ message, ...request }: SendRequest): JsonObject {
  const { contextId, taskId, ...content } = message;
  return {
    id: request.chosenTaskId ?? taskId ?? '',
    message: encodeMessage(content),
    ...present({
      sessionId: contextId,
      historyLength: request.historyLength,
      acceptedOutputModes: request.acceptedOutputModes,
      pushNotification: request.push && pushOf(request.push),
      metadata: request.metadata,
    }),
  };
}

export function encodePush(config: PushConfig): JsonObject {
  const { id: _id, ...shown } = shownPush(config);
  return { id: clientTaskId(config.taskId), pushNotificationConfig: shown };
}
