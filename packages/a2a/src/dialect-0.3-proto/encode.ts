import type { A2AErrorCode } from '../errors.ts';
import { isObject, type JsonObject, present } from '../json-value.ts';

/**
 * Encodes objects of the JSON of 0.3 in the ProtoJSON of its definition: `content` for `parts` of a message, enums by their names,
 * a oneof for `kind`.
 */

/** Metadata key that holds a message's `referenceTaskIds`, because the definition has no field for them. */
export const REFERENCES = 'hopline.referenceTaskIds';

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

/** Error names of A2A 0.3 (section 8), and the name of 1.0 for an unknown version. Other codes are not errors of the protocol. */
const ERROR_TYPES: Readonly<Partial<Record<A2AErrorCode, string>>> = {
  PARSE_ERROR: 'JSONParseError',
  INVALID_REQUEST: 'InvalidRequestError',
  METHOD_NOT_FOUND: 'MethodNotFoundError',
  INVALID_PARAMS: 'InvalidParamsError',
  INTERNAL_ERROR: 'InternalError',
  TASK_NOT_FOUND: 'TaskNotFoundError',
  TASK_NOT_CANCELABLE: 'TaskNotCancelableError',
  PUSH_NOTIFICATION_NOT_SUPPORTED: 'PushNotificationNotSupportedError',
  UNSUPPORTED_OPERATION: 'UnsupportedOperationError',
  CONTENT_TYPE_NOT_SUPPORTED: 'ContentTypeNotSupportedError',
  INVALID_AGENT_RESPONSE: 'InvalidAgentResponseError',
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: 'AuthenticatedExtendedCardNotConfiguredError',
  VERSION_NOT_SUPPORTED: 'VersionNotSupportedError',
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

function protoStatus(status: unknown): JsonObject {
  const { state, message, timestamp } = status as JsonObject;
  return {
    state: STATES[String(state)],
    ...present({ message: isObject(message) ? protoMessage(message) : undefined, timestamp }),
  };
}

function protoArtifact(artifact: unknown): JsonObject {
  const { parts: given, ...same } = artifact as JsonObject;
  return { ...same, parts: parts(given) };
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

/** Converts a part from the JSON of 0.3 to ProtoJSON, where the content member replaces `kind`. */
function protoPart(part: unknown): JsonObject {
  const { kind, text, file, data, metadata } = part as JsonObject;
  if (kind === 'text') return { text, ...present({ metadata }) };
  if (kind === 'file') return { file: protoFile(file as JsonObject), ...present({ metadata }) };
  return { data: { data }, ...present({ metadata }) };
}

function protoFile({ bytes, uri, name, mimeType }: JsonObject): JsonObject {
  return present({ fileWithBytes: bytes, fileWithUri: uri, name, mimeType });
}

/** Converts a configuration from a JSON-RPC result of 0.3 to ProtoJSON. */
export function protoPushConfig(result: JsonObject): JsonObject {
  const { taskId, pushNotificationConfig } = result;
  const { id } = isObject(pushNotificationConfig) ? pushNotificationConfig : {};
  return { name: `tasks/${taskId}/pushNotificationConfigs/${id}`, pushNotificationConfig };
}

export function protoPushConfigs(results: readonly JsonObject[]): JsonObject {
  return { configs: results.map(protoPushConfig), nextPageToken: '' };
}

/**
 * The name by which the Python SDK recognizes an error of 0.3 if there is no JSON-RPC number: the member `type` over HTTP+JSON, and the
 * text before `: ` in a gRPC message. Without it, its 1.x releases report an unknown task as an unknown method.
 */
export function errorType(code: A2AErrorCode): string | undefined {
  return ERROR_TYPES[code];
}
