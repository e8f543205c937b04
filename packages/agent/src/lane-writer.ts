import { isDeeperThan } from '@hopline/a2a';
import {
  type AgentInput,
  type ArtifactInput,
  INPUT_DEPTH_MAX,
  type InputSource,
  type LaneArtifact,
  type TextInput,
} from '@hopline/events';
import { TURN_LANES_MAX } from '@hopline/task';
import { BoundExceeded, TURN_TEXT_BYTES_MAX } from './limits.ts';

/** A UTF-16 unit takes at most this many bytes in JSON. */
export const UNIT_BYTES_MAX = 6;

/** Destination of inputs: the part of an InputWriter that never waits. */
export interface InputSink {
  add(input: AgentInput): void;
  addHeld(input: Exclude<AgentInput, TextInput>, holdMs: number): void;
  token(lane: string, text: string, atMs?: number, id?: string): void;
}

/** A change to the text of a lane: text to append, or text that replaces everything before it. */
export type TextChange = { replace: boolean; text: string };

/** The source's message id of a token, and the part of the agent that wrote it. */
export type TokenOrigin = { id?: string; source?: InputSource };

/** Destination of text: LaneWriter or WithheldText. */
export type TextLanes = Pick<LaneWriter, 'token' | 'write' | 'open'>;

/**
 * Writes the inputs of one attempt, and opens and closes its lanes. A lane is opened with its first text, and again when a text replaces
 * it. A later attempt reopens a lane that an earlier one has left open, so that its first chunk replaces what that attempt streamed (C-5).
 *
 * An input that does not fit into a record is rejected here. Otherwise it would break the writer permanently, and every further attempt
 * would run the agent in vain. Names, ids, metadata and resume values have no other bound.
 */
export class LaneWriter {
  readonly #sink: InputSink;
  readonly #priorLanes: ReadonlySet<string>;
  readonly #inputBytesMax: number;
  readonly #open = new Set<string>();
  /** Every lane that was opened. */
  readonly #lanes = new Set<string>();
  #textBytes = 0;

  /** `priorLanes`: lanes that earlier attempts have left open. `inputBytesMax`: JSON bytes of one input. */
  constructor(sink: InputSink, priorLanes: ReadonlySet<string>, inputBytesMax: number) {
    this.#sink = sink;
    this.#priorLanes = priorLanes;
    this.#inputBytesMax = inputBytesMax;
  }

  /** Adds text, which must not be empty. Throws BoundExceeded after TURN_TEXT_BYTES_MAX. */
  token(lane: string, artifact: LaneArtifact, text: string, { id, source }: TokenOrigin = {}): void {
    this.#countText(text);
    if (!this.#open.has(lane)) this.open(lane, artifact, source);
    this.#send(lane, text, id);
  }

  /** Adds text, or replaces all earlier text. Throws like `token`. */
  write(lane: string, artifact: LaneArtifact, change: TextChange | undefined, origin: TokenOrigin = {}): void {
    if (change === undefined) return;
    const { replace, text } = change;
    if (!replace) {
      this.token(lane, artifact, text, origin);
      return;
    }
    this.#countText(text);
    this.open(lane, artifact, origin.source);
    if (text !== '') this.#send(lane, text, origin.id);
  }

  /** Throws BoundExceeded for more lanes than a turn may have: the relay would fail the whole task. */
  open(lane: string, artifact: LaneArtifact, source?: InputSource): void {
    this.#countLane(lane);
    this.add({ kind: 'open', lane, artifact, ...(source && { source }) });
    this.#open.add(lane);
  }

  /**
   * An artifact event of a lane. Use `add` for an artifact that is complete in one event: it needs no lane, and lanes are limited
   * (TURN_LANES_MAX of packages/task).
   */
  artifact(input: ArtifactInput): void {
    const { lane } = input;
    if (this.#priorLanes.has(lane) && !this.#lanes.has(lane)) this.open(lane, input.artifact);
    if (!input.last) this.#countLane(lane);
    this.add(input);
    if (input.last) this.#open.delete(lane);
    else this.#open.add(lane);
  }

  isOpen(lane: string): boolean {
    return this.#open.has(lane);
  }

  close(lane: string): void {
    if (this.#open.delete(lane)) this.add({ kind: 'close', lane });
  }

  closeAll(): void {
    for (const lane of [...this.#open]) this.close(lane);
  }

  /** Adds any input that is not text. Throws BoundExceeded, and TypeError or RangeError for a value that cannot be written as JSON. */
  add(input: AgentInput): void {
    this.#check(input);
    this.#sink.add(input);
  }

  /** Adds an input that is sent together with the next one, or by itself after `holdMs`. Throws like `add`. */
  addHeld(input: Exclude<AgentInput, TextInput>, holdMs: number): void {
    this.#check(input);
    this.#sink.addHeld(input, holdMs);
  }

  #send(lane: string, text: string, id: string | undefined): void {
    // The writer splits text, but not ids.
    if (id !== undefined && id.length * UNIT_BYTES_MAX > this.#inputBytesMax) throw this.#tooLarge();
    this.#sink.token(lane, text, Date.now(), id);
  }

  #countLane(lane: string): void {
    this.#lanes.add(lane);
    if (this.#lanes.size > TURN_LANES_MAX)
      throw new BoundExceeded(`the agent made more than ${TURN_LANES_MAX} texts and artifacts of text in one turn`);
  }

  #countText(text: string): void {
    this.#textBytes += Buffer.byteLength(text);
    if (this.#textBytes > TURN_TEXT_BYTES_MAX)
      throw new BoundExceeded(`the agent sent more than ${TURN_TEXT_BYTES_MAX} bytes of text in one turn`);
  }

  #check(input: AgentInput): void {
    // The size is checked first, because a large input would make the check of its depth slow.
    if (Buffer.byteLength(JSON.stringify(input)) > this.#inputBytesMax) throw this.#tooLarge();
    if (isDeeperThan(input, INPUT_DEPTH_MAX))
      throw new BoundExceeded(`an event of the agent nests deeper than ${INPUT_DEPTH_MAX} levels of JSON`);
  }

  #tooLarge(): BoundExceeded {
    return new BoundExceeded(`an event of the agent has more than ${this.#inputBytesMax} bytes`);
  }
}
