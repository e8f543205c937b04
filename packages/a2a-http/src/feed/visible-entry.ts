import { DIALECTS, type DialectName, frameResult, type Part, type StreamResponse } from '@hopline/a2a';
import { eventOf, formatCursor, type VisibleFact } from '@hopline/events';

/** Bytes counted for a fact beside its content. */
const ENTRY_BYTES = 512;

/** A fact that clients see. Its JSON is made once per dialect, whatever the number of viewers: only the request id differs between them. */
export class VisibleEntry {
  readonly fact: VisibleFact;
  readonly generation: number;
  /** The SSE id. */
  readonly cursor: string;
  #fresh: boolean;
  #json: { [name in DialectName]?: string } = {};

  /** `fresh`: it came live, so that the time to its first delivery means something. */
  constructor(fact: VisibleFact, seq: number, fresh: boolean) {
    this.fact = fact;
    this.#fresh = fresh;
    this.generation = fact.generation;
    this.cursor = formatCursor({ generation: fact.generation, seq });
  }

  /** What stands after `"result":` in a frame. `indexOf`: the place of an artifact among those of its task. */
  json(dialect: DialectName, indexOf: (artifactId: string) => number): string {
    this.#json[dialect] ??= this.#encoded(dialect, indexOf);
    return this.#json[dialect];
  }

  #encoded(name: DialectName, indexOf: (artifactId: string) => number): string {
    const event = eventOf(this.fact);
    const index = 'artifactUpdate' in event ? indexOf(event.artifactUpdate.artifact.artifactId) : undefined;
    return frameResult(DIALECTS[name], DIALECTS[name].encodeEvent(event, index));
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
