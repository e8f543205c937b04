import type { Part, StreamResponse } from '@hopline/a2a';
import { eventOf, formatCursor, type VisibleFact } from '@hopline/events';

/** Bytes counted per fact besides its content. */
const ENTRY_BYTES = 512;

/** Index of an artifact among its task's, in order of creation, from 0. */
export type ArtifactIndex = (artifactId: string) => number;

/** How a binding encodes an event in one dialect. Results are cached per encoder object, so use one object per encoding. */
export type EventEncoder<T> = {
  /** `artifactIndex`: index of the event's artifact; undefined for other events. */
  encode(event: StreamResponse, artifactIndex: number | undefined, generation: number): T;
};

/** `storedAt` is absent when the NATS server does not report it. */
type LiveTimes = { storedAt: number | undefined; readAt: number };

/** A fact that clients see, encoded once per encoder for any number of viewers. */
export class VisibleEntry {
  readonly fact: VisibleFact;
  readonly generation: number;
  /** The cursor after this event. */
  readonly cursor: string;
  /** When a live fact was stored and read, epoch milliseconds; absent for a fact that was read from the log. */
  readonly live: LiveTimes | undefined;
  #isFirst: boolean;
  #contentBytes: number | undefined;
  /** Created at the first encoding. */
  #encoded: Map<EventEncoder<unknown>, unknown> | undefined;

  constructor(fact: VisibleFact, seq: number, live?: LiveTimes) {
    this.fact = fact;
    this.live = live;
    this.#isFirst = live !== undefined;
    this.generation = fact.generation;
    this.cursor = formatCursor({ generation: fact.generation, seq });
  }

  /** Whether this event directly follows the one with the given generation. A fact that names its predecessor may have any generation. */
  follows(generation: number): boolean {
    return this.generation === generation + 1 || this.fact.lostAfter === generation;
  }

  encoded<T>(encoder: EventEncoder<T>, indexOf: ArtifactIndex): T {
    const known = this.#encoded?.get(encoder);
    if (known !== undefined) return known as T;
    const event = eventOf(this.fact);
    const index = 'artifactUpdate' in event ? indexOf(event.artifactUpdate.artifact.artifactId) : undefined;
    const result = encoder.encode(event, index, this.generation);
    this.#encoded ??= new Map();
    this.#encoded.set(encoder, result);
    return result;
  }

  /** False once `takeFirstDelivery` has returned true. */
  get isUndelivered(): boolean {
    return this.#isFirst;
  }

  /** True once, for a live fact: latency is measured at the first socket, not per viewer. */
  takeFirstDelivery(): boolean {
    const first = this.#isFirst;
    this.#isFirst = false;
    return first;
  }

  /** Approximate memory. Estimated, not measured: serializing every fact would double the cost of a fact without a viewer. */
  get bytes(): number {
    return ENTRY_BYTES + this.contentBytes;
  }

  get contentBytes(): number {
    this.#contentBytes ??= bytesOfParts(partsOf(eventOf(this.fact)));
    return this.#contentBytes;
  }
}

export function bytesOfParts(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + bytesOf(part), 0);
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
