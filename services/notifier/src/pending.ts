import type { StreamResponse, Task, TaskArtifactUpdateEvent } from '@hopline/a2a';
import type { TraceCarrier } from '@hopline/events';

/** One or several events of a task that wait for delivery as one. */
export type Pending = {
  event: StreamResponse;
  /** Of the last of its events, with the log sequence of the record that held it. */
  generation: number;
  seq: number;
  /** How many events it holds. */
  count: number;
  /** Of the first of its events, epoch milliseconds. */
  at: number;
  /** Creation context of the first record, and of the last one. */
  trace?: TraceCarrier | undefined;
  lastTrace?: TraceCarrier | undefined;
  /** The task after the last of its events, for dialects whose webhooks are told the whole task. */
  task?: Task | undefined;
  /** Place of the artifact among those of its task. */
  artifactIndex?: number | undefined;
  /** About how long the body will be. */
  bytes: number;
  terminal: boolean;
};

/** Text that waited behind a slow webhook is put together up to this much; bytes. */
export const MERGED_BYTES_MAX = 128 * 1024;

/**
 * What waited together is told together: pieces of one artifact, each appended to the one before, become one piece with the same text (S4-24: notifications come after
 * coalescing). A status, another artifact or a piece that replaces is never merged, and order never changes. A whole task says all at once what several artifact events did to it.
 * undefined: the second one is a delivery of its own.
 */
export function merged(first: Pending, second: Pending): Pending | undefined {
  if (!('artifactUpdate' in first.event) || !('artifactUpdate' in second.event)) return undefined;
  const both = { ...second, count: first.count + second.count, at: first.at, trace: first.trace };
  if (first.task !== undefined) return both;
  if (first.bytes + second.bytes > MERGED_BYTES_MAX) return undefined;
  const artifactUpdate = joined(first.event.artifactUpdate, second.event.artifactUpdate);
  return artifactUpdate && { ...both, event: { artifactUpdate }, bytes: first.bytes + second.bytes };
}

function joined(first: TaskArtifactUpdateEvent, second: TaskArtifactUpdateEvent): TaskArtifactUpdateEvent | undefined {
  const text = textOf(first);
  const more = textOf(second);
  const continues = second.append === true && first.lastChunk !== true && frameOf(first) === frameOf(second);
  if (!continues || text === undefined || more === undefined) return undefined;
  const artifact = { ...first.artifact, parts: [{ text: text + more }] };
  const { lastChunk: _open, ...opening } = first;
  return { ...opening, artifact, ...(second.lastChunk !== undefined && { lastChunk: second.lastChunk }) };
}

/** The text of an update that is nothing but text. */
function textOf({ artifact: { parts } }: TaskArtifactUpdateEvent): string | undefined {
  const [part, ...others] = parts;
  return part?.text !== undefined && others.length === 0 && Object.keys(part).length === 1 ? part.text : undefined;
}

/** Everything two pieces must share to be pieces of one thing. */
function frameOf({ artifact, metadata }: TaskArtifactUpdateEvent): string {
  const { artifactId, name, description, metadata: own, extensions } = artifact;
  return JSON.stringify([artifactId, name, description, own, extensions, metadata]);
}
