import { AnswerDeduplicator, type ArtifactText, isWholeAnswer } from './answer-deduplicator.ts';
import type { TextChange, TextLanes, TokenOrigin } from './lane-writer.ts';
import type { TextStreams } from './streamed-text.ts';

/** The text of an answer that belongs to none of the agent's streams. */
export interface UnstreamedText {
  /** Takes the tokens, including those of streams. */
  readonly tokens: Pick<TextStreams, 'token'>;
  /** Takes the whole text so far. */
  snapshot(text: string): void;
  artifact(chunk: ArtifactText): void;
  /** Takes the text of the agent's last message. Returns true if the answer contains it. */
  ending(text: string): boolean;
}

/** Text of an agent that sends each text once. */
export class UniqueText implements UnstreamedText {
  readonly tokens: TextStreams;
  /** True while no artifact has added text to the answer. */
  #tokensOnly = true;

  constructor(streams: TextStreams) {
    this.tokens = streams;
  }

  snapshot(text: string): void {
    this.tokens.snapshot(text);
  }

  artifact({ isResult, text, append }: ArtifactText): void {
    if (isResult && !append) this.tokens.snapshot(text);
    else this.tokens.token(text, undefined);
    this.#tokensOnly &&= text === '';
  }

  ending(text: string): boolean {
    const answer = this.tokens.text;
    if (!isWholeAnswer(text, { answer, tokensOnly: this.#tokensOnly })) return answer.endsWith(text);
    this.tokens.snapshot(text);
    return true;
  }
}

/** Text of an agent that may send one text several times (`Agent.repeatsText`): the answer has each text once (S2-2). */
export class RepeatedText implements UnstreamedText {
  readonly #deduplicator = new AnswerDeduplicator();
  readonly #streams: TextStreams;
  readonly #lanes: TextLanes;

  constructor(streams: TextStreams, lanes: TextLanes) {
    this.#streams = streams;
    this.#lanes = lanes;
  }

  get tokens(): this {
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
