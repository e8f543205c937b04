import type { Part, StreamResponse } from '@hopline/a2a';
import { eventOf, formatCursor, type VisibleFact } from '@hopline/events';

/** Bytes counted for a fact beside its content. */
const ENTRY_BYTES = 512;

/** Place of an artifact among those of its task, in order of opening, from 0. */
export type ArtifactIndex = (artifactId: string) => number;

/** What a binding makes of an event in one dialect. One object per form: it is the name under which the result is kept. */
export type EventEncoder<T> = {
  /** `artifactIndex`: which of the task's artifacts the event is about; undefined for other events. */
  encode(event: StreamResponse, artifactIndex: number | undefined, generation: number): T;
};

/** A fact that clients see. It is encoded once per form, whatever the number of viewers. */
export class VisibleEntry {
  readonly fact: VisibleFact;
  readonly generation: number;
  /** Where a client that has seen this event goes on. */
  readonly cursor: string;
  #fresh: boolean;
  /** Made when somebody watches. */
  #encoded: Map<EventEncoder<unknown>, unknown> | undefined;

  /** `fresh`: it came live, so that the time to its first delivery means something. */
  constructor(fact: VisibleFact, seq: number, fresh: boolean) {
    this.fact = fact;
    this.#fresh = fresh;
    this.generation = fact.generation;
    this.cursor = formatCursor({ generation: fact.generation, seq });
  }

  encoded<T>(encoder: EventEncoder<T>, indexOf: ArtifactIndex): T {
    const known = this.#encoded?.get(encoder);
    if (known !== undefined) return known as T;
    const event = eventOf(this.fact);
    const index = 'artifactUpdate' in event ? indexOf(event.artifactUpdate.artifact.artifactId) : undefined;
    const made = encoder.encode(event, index, this.generation);
    this.#encoded ??= new Map();
    this.#encoded.set(encoder, made);
    return made;
  }

  /** True once, for a live fact: latency is measured at the first socket, not once per viewer. */
  takeFirstDelivery(): boolean {
    const first = this.#fresh;
    this.#fresh = false;
    return first;
  }

  /** About how much memory it holds. Counted instead of measured: a stringify per fact would double the cost of a fact nobody watches. */
  get bytes(): number {
    return ENTRY_BYTES + partsOf(eventOf(this.fact)).reduce((sum, part) => sum + bytesOf(part), 0);
  }
}

function partsOf(event: StreamResponse): Part[] {
  if ('artifactUpdate' in event) return event.artifactUpdate.artifact.parts;
  if ('statusUpdate' in event) return event.statusUpdate.status.message?.parts ?? [];
  if ('message' in event) return event.message.parts;
  return (event.task.history ?? []).flatMap(message => message.parts);
}

function bytesOf(part: Part): number {
  const text = part.text ?? part.raw ?? part.url;
  return text === undefined ? JSON.stringify(part.data ?? null).length : text.length;
}
