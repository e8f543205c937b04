import type { AgentInput, ArtifactInput, InputSource, LaneArtifact } from '@hopline/events';
import { BoundExceeded, TURN_TEXT_BYTES_MAX } from './limits.ts';
import type { Saying } from './said-text.ts';

/** Where inputs go: the part of an InputWriter that needs no waiting. */
export interface InputSink {
  add(input: AgentInput): void;
  token(lane: string, text: string, atMs?: number, id?: string): void;
}

/** Where texts go. */
export type TextLanes = Pick<Lanes, 'say' | 'open'>;

/**
 * The lanes of one attempt. A lane is opened with its first text, and again when a text replaces it; a later attempt opens the lanes of the dead one again before it
 * uses them, so that its first chunk replaces what was streamed (C-5).
 */
export class Lanes {
  readonly #sink: InputSink;
  readonly #attempt: number;
  readonly #open = new Set<string>();
  #bytes = 0;

  constructor(sink: InputSink, attempt: number) {
    this.#sink = sink;
    this.#attempt = attempt;
  }

  /** Throws BoundExceeded after TURN_TEXT_BYTES_MAX. */
  say(
    lane: string,
    artifact: LaneArtifact,
    saying: Saying | undefined,
    { id, source }: { id?: string; source?: InputSource } = {},
  ): void {
    if (saying === undefined) return;
    this.#bytes += Buffer.byteLength(saying.text);
    if (this.#bytes > TURN_TEXT_BYTES_MAX) {
      throw new BoundExceeded(`the agent said more than ${TURN_TEXT_BYTES_MAX} bytes in one turn`);
    }
    if (saying.replace || !this.#open.has(lane)) this.open(lane, artifact, source);
    if (saying.text !== '') this.#sink.token(lane, saying.text, Date.now(), id);
  }

  open(lane: string, artifact: LaneArtifact, source?: InputSource): void {
    this.#sink.add({ kind: 'open', lane, artifact, ...(source && { source }) });
    this.#open.add(lane);
  }

  artifact(input: ArtifactInput): void {
    const { lane } = input;
    if (this.#attempt > 1 && !this.#open.has(lane)) this.open(lane, input.artifact);
    this.#sink.add(input);
    if (input.last) this.#open.delete(lane);
    else this.#open.add(lane);
  }

  /** A whole artifact of a lane that nobody streams to: it is not remembered as a lane (LANES_MAX of packages/task), so it needs no opening. */
  notice(input: ArtifactInput): void {
    this.#sink.add(input);
  }

  isOpen(lane: string): boolean {
    return this.#open.has(lane);
  }

  close(lane: string): void {
    if (this.#open.delete(lane)) this.#sink.add({ kind: 'close', lane });
  }

  closeAll(): void {
    for (const lane of this.#open) this.#sink.add({ kind: 'close', lane });
    this.#open.clear();
  }
}
