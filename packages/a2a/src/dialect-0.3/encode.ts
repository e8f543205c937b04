import type { JsonObject } from '../json-value.ts';
import { present } from '../json-value.ts';
import {
  type Artifact,
  isTerminal,
  type Message,
  type StreamResponse,
  type Task,
  type TaskArtifactUpdateEvent,
  type TaskStatus,
  type TaskStatusUpdateEvent,
} from '../types.ts';
import { encodePart } from './part.ts';
import { encodeState } from './state.ts';

/** Encodes the JSON of A2A 0.3: `kind` on every object, `final` on status updates, every key on artifact updates (S2-19). */

export function encodeMessage(message: Message): JsonObject {
  const { messageId, role, parts, ...rest } = message;
  return { kind: 'message', messageId, role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(encodePart), ...rest };
}

function encodeArtifact(artifact: Artifact): JsonObject {
  const { artifactId, name, description, parts, ...rest } = artifact;
  return { artifactId, ...present({ name, description }), parts: parts.map(encodePart), ...rest };
}

function encodeStatus(status: TaskStatus): JsonObject {
  const { state, message, timestamp } = status;
  return { state: encodeState(state), ...present({ message: message && encodeMessage(message), timestamp }) };
}

export function encodeTask(task: Task): JsonObject {
  const { id, contextId, status, history, artifacts, metadata } = task;
  return {
    kind: 'task',
    id,
    contextId,
    status: encodeStatus(status),
    ...present({ history: history?.map(encodeMessage), artifacts: artifacts?.map(encodeArtifact), metadata }),
  };
}

function encodeStatusUpdate(update: TaskStatusUpdateEvent): JsonObject {
  const { taskId, contextId, status, ...rest } = update;
  return { kind: 'status-update', taskId, contextId, status: encodeStatus(status), final: isFinal(status), ...rest };
}

/**
 * A message stream ends here: at a terminal state and at input-required. Authorization happens out of band, so auth-required
 * does not end it ([A2A 1.0] 7.6.1).
 */
export function isFinal(status: TaskStatus): boolean {
  return isTerminal(status.state) || status.state === 'TASK_STATE_INPUT_REQUIRED';
}

function encodeArtifactUpdate(update: TaskArtifactUpdateEvent): JsonObject {
  const { taskId, contextId, artifact, append, lastChunk, ...rest } = update;
  return {
    kind: 'artifact-update',
    taskId,
    contextId,
    artifact: encodeArtifact(artifact),
    append: append === true,
    lastChunk: lastChunk === true,
    ...rest,
  };
}

export function encodeEvent(event: StreamResponse): JsonObject {
  if ('task' in event) return encodeTask(event.task);
  if ('message' in event) return encodeMessage(event.message);
  if ('statusUpdate' in event) return encodeStatusUpdate(event.statusUpdate);
  return encodeArtifactUpdate(event.artifactUpdate);
}
