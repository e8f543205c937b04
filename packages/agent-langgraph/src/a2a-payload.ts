import { randomUUID } from 'node:crypto';
import { decodeRemoteEvent, isObject, type Message, type Metadata, type StreamResponse } from '@hopline/a2a';
import { type JsonObject, listOf } from './json.ts';

/** A2A objects that a graph wrote, in 1.0 or 0.3 notation. Their ids of task and context are ours, whatever they say (S1-14, S1-29). */

/** An event in a `custom` payload; undefined when it is none. */
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
  return own(decoded !== undefined && 'message' in decoded ? decoded.message : { messageId: '', role: 'ROLE_AGENT', parts: [] });
}

/** A task is a patch: it may lack everything. */
export function readTask(task: JsonObject): StreamResponse | undefined {
  const holders = [isObject(task.status) ? task.status.message : undefined, ...listOf(task.artifacts), ...listOf(task.history)];
  const isOld = is03(task) || holders.some(is03);
  const state = isOld ? 'working' : 'TASK_STATE_WORKING';
  const status =
    isObject(task.status) && task.status.state !== undefined ? task.status : { ...(isObject(task.status) && task.status), state };
  const whole = { ...task, id: ID, contextId: ID, status };
  return decode(isOld ? { ...whole, kind: 'task' } : { task: whole });
}

/** 0.3 names the kind of everything; 1.0 names nothing. */
function is03(value: unknown): boolean {
  return isObject(value) && ('kind' in value || listOf(value.parts).some(part => isObject(part) && 'kind' in part));
}

/** A message as it may be shown: by the agent, without foreign ids, with an id. */
export function own(message: Message): Message {
  const { taskId: _task, contextId: _context, referenceTaskIds: _references, metadata, ...rest } = message;
  const kept = ownMetadata(metadata);
  return { ...rest, messageId: message.messageId || randomUUID(), role: 'ROLE_AGENT', ...(kept && { metadata: kept }) };
}

/** Routing and identity are the server's (S1-15): what a graph says about them is left out. */
const SERVER_METADATA = ['hopline.', 'aion:'];

export function ownMetadata(metadata: Metadata | undefined): Metadata | undefined {
  const kept = Object.entries(metadata ?? {}).filter(
    ([key]) => !SERVER_METADATA.some(prefix => key.toLowerCase().startsWith(prefix)),
  );
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** Stands for our ids: decoding wants some, and they are replaced where facts are decided. */
const ID = 'turn';

function withIds(event: JsonObject): JsonObject {
  return { ...event, taskId: ID, contextId: ID };
}

function decode(event: unknown): StreamResponse | undefined {
  const decoded = decodeRemoteEvent(event);
  return 'event' in decoded ? decoded.event : undefined;
}
