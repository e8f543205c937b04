import { withJsonFieldNames } from '../dialect-1.0/json-names.ts';
import { isObject, type JsonObject, present } from '../json-value.ts';
import { jsonPart, protoPart } from './part.ts';

/**
 * Converts objects between the JSON of 0.3 and the ProtoJSON of its definition: `content` for `parts` of a message, enums by
 * their names, a oneof for `kind`. The definition has no `referenceTaskIds`; they travel in the metadata.
 */
const REFERENCES = 'hopline.referenceTaskIds';

const STATES: Readonly<Record<string, string>> = {
  submitted: 'TASK_STATE_SUBMITTED',
  working: 'TASK_STATE_WORKING',
  completed: 'TASK_STATE_COMPLETED',
  failed: 'TASK_STATE_FAILED',
  canceled: 'TASK_STATE_CANCELLED',
  rejected: 'TASK_STATE_REJECTED',
  'input-required': 'TASK_STATE_INPUT_REQUIRED',
  'auth-required': 'TASK_STATE_AUTH_REQUIRED',
};

const parts = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.map(protoPart) : []);

function protoMessage(message: JsonObject): JsonObject {
  const { messageId, contextId, taskId, role, metadata, extensions, referenceTaskIds } = message;
  const all = referenceTaskIds === undefined ? metadata : { ...(metadata as JsonObject), [REFERENCES]: referenceTaskIds };
  return {
    messageId,
    role: role === 'user' ? 'ROLE_USER' : 'ROLE_AGENT',
    content: parts(message.parts),
    ...present({ contextId, taskId, metadata: all, extensions }),
  };
}

/**
 * `value`: ProtoJSON of a client's message. A message in the JSON of 0.3 stays as it is: the specification's HTTP+JSON examples
 * use that form.
 */
export function jsonMessage(value: unknown): unknown {
  if (!isObject(value) || (value.content === undefined && value.parts !== undefined)) return value;
  const { role, content, metadata, ...same } = withJsonFieldNames(value);
  const { [REFERENCES]: referenceTaskIds, ...own } = isObject(metadata) ? metadata : {};
  return present({
    ...same,
    kind: 'message',
    role: role === 'ROLE_USER' ? 'user' : role === 'ROLE_AGENT' ? 'agent' : role,
    parts: Array.isArray(content) ? content.map(jsonPart) : [],
    metadata: Object.keys(own).length > 0 ? own : undefined,
    referenceTaskIds,
  });
}

function protoStatus(status: unknown): JsonObject {
  const { state, message, timestamp } = status as JsonObject;
  return {
    state: STATES[String(state)],
    ...present({ message: isObject(message) ? protoMessage(message) : undefined, timestamp }),
  };
}

function protoArtifact(artifact: unknown): JsonObject {
  const { parts: own, ...same } = artifact as JsonObject;
  return { ...same, parts: parts(own) };
}

export function protoTask(task: JsonObject): JsonObject {
  const { id, contextId, status, history, artifacts, metadata } = task;
  return {
    id,
    contextId,
    status: protoStatus(status),
    ...present({
      artifacts: Array.isArray(artifacts) ? artifacts.map(protoArtifact) : undefined,
      history: Array.isArray(history) ? history.map(protoMessage) : undefined,
      metadata,
    }),
  };
}

/** A result of a send or of a stream, under the oneof member of its `kind`. */
export function protoResult(result: JsonObject): JsonObject {
  const { kind, ...value } = result;
  if (kind === 'task') return { task: protoTask(value) };
  if (kind === 'message') return { message: protoMessage(value) };
  if (kind === 'status-update') return { statusUpdate: { ...value, status: protoStatus(value.status) } };
  return { artifactUpdate: { ...value, artifact: protoArtifact(value.artifact) } };
}
