import type { StreamResponse, Task, TaskArtifactUpdateEvent } from '@hopline/a2a';
import type { TraceCarrier } from '@hopline/events';

/** One or several events of a task that are delivered as one notification. */
export type PendingDelivery = {
  event: StreamResponse;
  /** Cursor of its last event, with the log sequence of that event's record. */
  generation: number;
  seq: number;
  /** Number of its events. */
  count: number;
  /** Epoch milliseconds at which its first event was stored. */
  at: number;
  /** Trace contexts of its first and its last record. */
  trace?: TraceCarrier | undefined;
  lastTrace?: TraceCarrier | undefined;
  /** The task after its last event, for dialects whose notifications contain the whole task. Set when the delivery is complete. */
  task?: Task | undefined;
  /** Index of the artifact within its task. */
  artifactIndex?: number | undefined;
  /** Estimated size of the body. */
  bytes: number;
  terminal: boolean;
};

/** Limits of a merged delivery. */
export const MERGED_BYTES_MAX = 128 * 1024;

/**
 * Merges two waiting deliveries. Chunks of one artifact, each appended to the previous one, become one chunk with the same text. A status,
 * another artifact or a replacing chunk is never merged, and the order never changes. Deliveries of whole tasks are merged as well, because
 * the later task contains the result of all artifact events. Returns undefined if the second one must stay a separate delivery.
 */
export function mergeDeliveries(first: PendingDelivery, second: PendingDelivery): PendingDelivery | undefined {
  if (!('artifactUpdate' in first.event) || !('artifactUpdate' in second.event)) return undefined;
  const both = joinDeliveries(first, second);
  if (first.task !== undefined) return both;
  if (first.bytes + second.bytes > MERGED_BYTES_MAX) return undefined;
  const artifactUpdate = joinText(first.event.artifactUpdate, second.event.artifactUpdate);
  return artifactUpdate && { ...both, event: { artifactUpdate }, bytes: first.bytes + second.bytes };
}

/** The second delivery, with the events of the first. */
export function joinDeliveries(first: PendingDelivery, second: PendingDelivery): PendingDelivery {
  return { ...second, count: first.count + second.count, at: first.at, trace: first.trace };
}

function joinText(first: TaskArtifactUpdateEvent, second: TaskArtifactUpdateEvent): TaskArtifactUpdateEvent | undefined {
  const text = onlyText(first);
  const more = onlyText(second);
  const continues = second.append === true && first.lastChunk !== true && frameOf(first) === frameOf(second);
  if (!continues || text === undefined || more === undefined) return undefined;
  const artifact = { ...first.artifact, parts: [{ text: text + more }] };
  const { lastChunk: _open, ...opening } = first;
  return { ...opening, artifact, ...(second.lastChunk !== undefined && { lastChunk: second.lastChunk }) };
}

/** The text of an update that contains only text. */
function onlyText({ artifact: { parts } }: TaskArtifactUpdateEvent): string | undefined {
  const [part, ...others] = parts;
  return part?.text !== undefined && others.length === 0 && Object.keys(part).length === 1 ? part.text : undefined;
}

/** The properties that two chunks of one text must share. */
function frameOf({ artifact, metadata }: TaskArtifactUpdateEvent): string {
  const { artifactId, name, description, metadata: own, extensions } = artifact;
  return JSON.stringify([artifactId, name, description, own, extensions, metadata]);
}
