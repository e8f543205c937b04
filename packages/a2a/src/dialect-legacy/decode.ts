import type { DecodedEvent } from '../dialect.ts';
import { decodePart as decodePart03, decodeState } from '../dialect-0.3/decode.ts';
import { decodePush as decodePush03 } from '../dialect-0.3/decode-requests.ts';
import { isObject, type JsonObject, list, metadata, present, text, texts } from '../json-value.ts';
import { objectReader } from '../object-reader.ts';
import type { CreatePushRequest, GetPushRequest, NewPushConfig, SendRequest } from '../requests.ts';
import { withStandardBase64 } from '../schema/decode-requests.ts';
import { createPushLegacy, getPushLegacy } from '../schema/push-params.ts';
import { sendParams } from '../schema/send-params-legacy.ts';
import { paramsCheck } from '../schema/validate.ts';
import type { Part } from '../types.ts';

const reader = objectReader({ part: decodePart, state: decodeState, isUser: role => role === 'user' });

const decodeMessage = reader.message;

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

/** Accepts a media type as the discriminator too, and keeps it as the part's media type. */
function decodePart(value: unknown): Part {
  const part = decodePart03(value);
  const type = isObject(value) ? value.type : undefined;
  if (typeof type !== 'string' || !type.includes('/') || part.mediaType !== undefined) return part;
  return { ...part, mediaType: type };
}

const checkSend = paramsCheck(sendParams);

/**
 * Params of tasks/send and tasks/sendSubscribe. Both block until the turn ends, except a send whose task has a webhook (S3-33).
 */
export function decodeSend(params: unknown): SendRequest {
  checkSend(params);
  const { id, sessionId, message, historyLength, acceptedOutputModes, pushNotification, metadata: given } = params as JsonObject;
  const { taskId: _task, contextId: _context, ...content } = withStandardBase64(decodeMessage(message as JsonObject));
  return {
    message: { ...content, ...present({ contextId: text(sessionId) }) },
    chosenTaskId: id as string,
    blocking: true,
    ...present({
      metadata: metadata(given),
      historyLength: typeof historyLength === 'number' ? historyLength : undefined,
      acceptedOutputModes: texts(acceptedOutputModes),
      push: decodePush(pushNotification),
    }),
  };
}

/** The configuration of a task. An id in it is ignored. */
function decodePush(value: unknown): Omit<NewPushConfig, 'id'> | undefined {
  const { id: _id, ...config } = decodePush03(value) ?? {};
  return 'url' in config ? config : undefined;
}

const checkCreatePush = paramsCheck(createPushLegacy);
const checkGetPush = paramsCheck(getPushLegacy);

export function decodeCreatePush(params: unknown): CreatePushRequest {
  checkCreatePush(params);
  const { id: taskId, pushNotificationConfig } = params as { id: string; pushNotificationConfig: JsonObject };
  return { taskId, config: decodePush(pushNotificationConfig)! };
}

export function decodeGetPush(params: unknown): GetPushRequest {
  checkGetPush(params);
  return { taskId: (params as { id: string }).id };
}
