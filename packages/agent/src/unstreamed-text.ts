import type { TextSink } from './agent-text.ts';
import { AnswerDeduplicator, type ArtifactText, isWholeAnswer } from './answer-deduplicator.ts';
import type { TextChange, TextLanes, TokenOrigin } from './lane-writer.ts';
import type { TextStreams } from './text-streams.ts';

/** The text of an answer that does not belong to any of the agent's streams. */
export interface UnstreamedText {
  /** Takes the tokens, including those of streams, and snapshots of the text so far. */
  readonly sink: TextSink;
  artifact(chunk: ArtifactText): void;
  /** Takes the text of the agent's last message. Returns true if the answer contains it. */
  ending(text: string): boolean;
}

/** Text of an agent that sends each text once. */
export class UniqueText implements UnstreamedText {
  readonly sink: TextStreams;
  /** True while no artifact has added text to the answer. */
  #tokensOnly = true;

  constructor(streams: TextStreams) {
    this.sink = streams;
  }

  artifact({ isResult, text, append }: ArtifactText): void {
    if (isResult && !append) this.sink.snapshot(text);
    else this.sink.token(text, undefined);
    this.#tokensOnly &&= text === '';
  }

  ending(text: string): boolean {
    const answer = this.sink.text;
    if (!isWholeAnswer(text, { answer, tokensOnly: this.#tokensOnly })) return answer.endsWith(text);
    this.sink.snapshot(text);
    return true;
  }
}

/** Text of an agent that may send one text several times (`Agent.repeatsText`). The answer contains each text once (S2-2). */
export class RepeatedText implements UnstreamedText {
  readonly #deduplicator = new AnswerDeduplicator();
  readonly #streams: TextStreams;
  readonly #lanes: TextLanes;

  constructor(streams: TextStreams, lanes: TextLanes) {
    this.#streams = streams;
    this.#lanes = lanes;
  }

  get sink(): this {
    return this;
  }

  token(text: string, stream: string | undefined, origin?: TokenOrigin): void {
    if (stream === undefined) this.#write(this.#deduplicator.token(text), origin);
    else this.#streams.token(text, stream, origin);
  }

  snapshot(text: string): void {
    this.#write(this.#deduplicator.snapshot(text));
  }

  artifact(chunk: ArtifactText): void {
    const isCopy = chunk.last && !chunk.append && this.#streams.isStreamed(chunk.text);
    if (!isCopy) this.#write(this.#deduplicator.artifact(chunk));
  }

  ending(text: string): boolean {
    const { covered, change } = this.#deduplicator.ending(text);
    this.#write(change);
    return covered;
  }

  #write(change: TextChange | undefined, origin?: TokenOrigin): void {
    if (change === undefined) return;
    const { lane, header } = this.#streams.laneOf();
    this.#lanes.write(lane, header, change, origin);
  }
}
