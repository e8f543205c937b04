import type { AgentInput } from '@hopline/events';
import type { InputSink } from './lanes.ts';
import { BoundExceeded } from './limits.ts';

/** JSON takes at most so many bytes for a UTF-16 unit. */
const UNIT_BYTES_MAX = 6;

/**
 * Refuses what no record takes. A writer that meets it is broken for good, and the turn would run again, with all that its agent does, until its attempts are used up: names, ids, reasons, metadata
 * and what a turn leaves for the next one have no bound of their own.
 */
export class BoundedSink implements InputSink {
  readonly #sink: InputSink;
  readonly #bytesMax: number;

  /** `bytesMax`: JSON bytes of one input. */
  constructor(sink: InputSink, bytesMax: number) {
    this.#sink = sink;
    this.#bytesMax = bytesMax;
  }

  /** Throws BoundExceeded, and TypeError for what is no JSON. */
  add(input: AgentInput): void {
    if (Buffer.byteLength(JSON.stringify(input)) > this.#bytesMax) throw this.#exceeded();
    this.#sink.add(input);
  }

  /** Text is cut by the writer; its id cannot be. Throws BoundExceeded. */
  token(lane: string, text: string, atMs?: number, id?: string): void {
    if (id !== undefined && id.length * UNIT_BYTES_MAX > this.#bytesMax) throw this.#exceeded();
    this.#sink.token(lane, text, atMs, id);
  }

  #exceeded(): BoundExceeded {
    return new BoundExceeded(`an event of the agent has more than ${this.#bytesMax} bytes`);
  }
}
