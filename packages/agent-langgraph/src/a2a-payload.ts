import { randomUUID } from 'node:crypto';
import { decodeRemoteEvent, isObject, type Message, type Metadata, type StreamResponse } from '@hopline/a2a';
import { type JsonObject, listOf } from './json.ts';

/** A2A objects written by a graph, in the notation of 1.0 or 0.3. Their task and context ids are replaced by ours. */

/** Reads the A2A event in a `custom` payload; undefined when there is none. */
export function readEvent(payload: unknown): StreamResponse | undefined {
  if (!isObject(payload)) return undefined;
  for (const member of ['statusUpdate', 'artifactUpdate'] as const) {
    if (isObject(payload[member])) return decode({ [member]: withIds(payload[member]) });
  }
  if (isObject(payload.message) && Array.isArray(payload.message.parts)) return { message: readMessageObject(payload.message) };
  if (isObject(payload.task)) return readTask(payload.task);
  if (typeof payload.kind !== 'string') return undefined;
  return payload.kind === 'task' ? readTask(payload) : decode(withIds(payload));
}

export function readMessageObject(message: JsonObject): Message {
  const decoded = decode(is03(message) ? { ...message, kind: 'message' } : { message });
  return agentMessage(
    decoded !== undefined && 'message' in decoded ? decoded.message : { messageId: '', role: 'ROLE_AGENT', parts: [] },
  );
}

/** Reads a task as a patch: every member is optional. */
export function readTask(task: JsonObject): StreamResponse | undefined {
  const holders = [isObject(task.status) ? task.status.message : undefined, ...listOf(task.artifacts), ...listOf(task.history)];
  const isOld = is03(task) || holders.some(is03);
  const state = isOld ? 'working' : 'TASK_STATE_WORKING';
  const status =
    isObject(task.status) && task.status.state !== undefined ? task.status : { ...(isObject(task.status) && task.status), state };
  const whole = { ...task, id: ID, contextId: ID, status };
  return decode(isOld ? { ...whole, kind: 'task' } : { task: whole });
}

/** Objects of 0.3 have a `kind`; those of 1.0 have none. */
function is03(value: unknown): boolean {
  return isObject(value) && ('kind' in value || listOf(value.parts).some(part => isObject(part) && 'kind' in part));
}

/** A message as a client may see it: from the agent, with an id, without the ids of the graph's task. */
export function agentMessage(message: Message): Message {
  const { taskId: _task, contextId: _context, referenceTaskIds: _references, metadata, ...rest } = message;
  const kept = clientMetadata(metadata);
  return { ...rest, messageId: message.messageId || randomUUID(), role: 'ROLE_AGENT', ...(kept && { metadata: kept }) };
}

/** Routing and identity are determined by the server, so a graph cannot set these members. */
const SERVER_METADATA = ['hopline.', 'aion:'];

export function clientMetadata(metadata: Metadata | undefined): Metadata | undefined {
  const kept = Object.entries(metadata ?? {}).filter(
    ([key]) => !SERVER_METADATA.some(prefix => key.toLowerCase().startsWith(prefix)),
  );
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** Placeholder: decoding requires ids, and the task decider replaces them. */
const ID = 'turn';

function withIds(event: JsonObject): JsonObject {
  return { ...event, taskId: ID, contextId: ID };
}

function decode(event: unknown): StreamResponse | undefined {
  const decoded = decodeRemoteEvent(event);
  return 'event' in decoded ? decoded.event : undefined;
}
