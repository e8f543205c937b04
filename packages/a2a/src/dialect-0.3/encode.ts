import { isObject, type JsonObject, present } from '../json-value.ts';
import type { NewPushConfig, PushConfig, SendRequest } from '../requests.ts';
import {
  type Artifact,
  isTerminal,
  type Message,
  type Metadata,
  type Part,
  type StreamResponse,
  type Task,
  type TaskArtifactUpdateEvent,
  type TaskState,
  type TaskStatus,
  type TaskStatusUpdateEvent,
  type TimelineEntry,
} from '../types.ts';

/** Encodes the JSON of A2A 0.3: `kind` on every object, `final` on status updates, every key on artifact updates (S2-19). */

export const STATES = {
  TASK_STATE_SUBMITTED: 'submitted',
  TASK_STATE_WORKING: 'working',
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_CANCELED: 'canceled',
  TASK_STATE_REJECTED: 'rejected',
  TASK_STATE_INPUT_REQUIRED: 'input-required',
  TASK_STATE_AUTH_REQUIRED: 'auth-required',
} as const satisfies Record<TaskState, string>;

/**
 * 0.3 cannot express the media type and file name of a text or data part, nor data that is not an object. They are stored in the part's
 * metadata, so that nothing is lost. The flag of wrapped data is the one that the 0.3 layer of @a2a-js/sdk 1.x writes and
 * reads.
 */
export const DATA_WRAPPED = 'data_part_compat';
export const MEDIA_TYPE = 'hopline.mediaType';
export const FILENAME = 'hopline.filename';

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
  const { id, contextId, status, history, artifacts, metadata, generation, timeline } = task;
  return {
    kind: 'task',
    id,
    contextId,
    status: encodeStatus(status),
    ...present({ history: history?.map(encodeMessage), artifacts: artifacts?.map(encodeArtifact), metadata }),
    ...present({ generation, timeline: timeline?.map(encodeTimelineEntry) }),
  };
}

/** Members that 0.3 does not have, for clients that ask for the draft 1.1. The card of 0.3 declares a history of state transitions. */
function encodeTimelineEntry({ message, status, generation }: TimelineEntry): JsonObject {
  return {
    ...present({ message: message && encodeMessage(message), status: status && encodeStatus(status) }),
    generation,
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

export function encodePart(part: Part): JsonObject {
  if (part.raw !== undefined || part.url !== undefined) return encodeFile(part);
  const extra = present({ [MEDIA_TYPE]: part.mediaType, [FILENAME]: part.filename });
  if (part.text !== undefined) return { kind: 'text', text: part.text, ...merged(part.metadata, extra) };
  if (isObject(part.data)) return { kind: 'data', data: part.data, ...merged(part.metadata, extra) };
  return { kind: 'data', data: { value: part.data ?? null }, ...merged(part.metadata, { ...extra, [DATA_WRAPPED]: true }) };
}

function encodeFile(part: Part): JsonObject {
  const content = part.raw === undefined ? { uri: part.url } : { bytes: part.raw };
  const file = { ...content, ...present({ name: part.filename, mimeType: part.mediaType }) };
  return { kind: 'file', file, ...merged(part.metadata, {}) };
}

function merged(own: Metadata | undefined, extra: Metadata): { metadata?: Metadata } {
  const all = { ...own, ...extra };
  return Object.keys(all).length > 0 ? { metadata: all } : {};
}

export function encodeState(state: TaskState): string {
  return STATES[state];
}

export function encodeSend(request: SendRequest): JsonObject {
  return {
    message: encodeMessage(request.message),
    configuration: present({
      blocking: request.blocking,
      historyLength: request.historyLength,
      acceptedOutputModes: request.acceptedOutputModes,
      pushNotificationConfig: request.push && pushOf(request.push),
    }),
    ...present({ metadata: request.metadata }),
  };
}

/** A configuration with its secrets, for a request to the agent that calls the webhook, never for a response. */
export function pushOf({ id: config, url, token, authentication }: NewPushConfig): JsonObject {
  const named = authentication && {
    schemes: [authentication.scheme],
    ...present({ credentials: authentication.credentials }),
  };
  return { ...present({ id: config }), url, ...present({ token, authentication: named }) };
}

/** A configuration as responses show it, without its secrets. */
export function shownPush({ id: config, url, authentication }: PushConfig): JsonObject {
  return pushOf({ id: config, url, ...present({ authentication: authentication && { scheme: authentication.scheme } }) });
}

export function encodePush(config: PushConfig): JsonObject {
  return { taskId: config.taskId, pushNotificationConfig: shownPush(config) };
}
