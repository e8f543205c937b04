import { type Message, textOf } from '@hopline/a2a';
import type { AgentPresentation } from '@hopline/events';
import { kindOfArtifact, withKind } from '@hopline/profiles';
import type { AgentArtifacts } from './agent-artifacts.ts';
import { type AgentText, type ArtifactChunk, isTextOnly, type Standing } from './agent-text.ts';
import { AnswerDeduplicator, type ArtifactText, isWholeAnswer } from './answer-deduplicator.ts';
import type { LaneWriter, TextChange, TextLanes, TokenOrigin } from './lane-writer.ts';
import { TextStreams } from './streamed-text.ts';
import { WithheldText } from './withheld-text.ts';

export type AnswerTextOptions = {
  lanes: LaneWriter;
  lane: string;
  presentation: Extract<AgentPresentation['text'], { as: 'answer' }>;
  artifacts: AgentArtifacts;
  /** UTF-16 units of an answer that the client does not see (policy `forwardText: false`); absent: the client sees it. */
  withheldUnitsMax?: number | undefined;
  /** The agent may send one text several times (`Agent.repeatsText`): the answer has it once (S2-2). */
  repeatsText: boolean;
};

/**
 * A supervisor shows one answer: all text of the agent belongs to it, wherever it stands. Other parts stay artifacts. Concurrent streams are
 * segments of the answer.
 */
export class AnswerText implements AgentText {
  readonly streams: TextStreams;
  readonly #presentation: AnswerTextOptions['presentation'];
  readonly #artifacts: AgentArtifacts;
  /** Has the text that belongs to no stream, and removes what repeats it; undefined for an agent that sends each text once. */
  readonly #deduplicator: AnswerDeduplicator | undefined;
  /** Without a deduplicator: no artifact has text in the answer. */
  #tokensOnly = true;
  readonly #withheld: WithheldText | undefined;
  readonly #lanes: TextLanes;
  /** The agent is a server that names the artifacts of its answer: those of other names stand beside it. */
  #namesAnswer = false;

  constructor({ lanes, lane, presentation, artifacts, withheldUnitsMax, repeatsText }: AnswerTextOptions) {
    this.#presentation = presentation;
    this.#artifacts = artifacts;
    this.#deduplicator = repeatsText ? new AnswerDeduplicator() : undefined;
    this.#withheld = withheldUnitsMax === undefined ? undefined : new WithheldText(lanes, withheldUnitsMax);
    this.#lanes = this.#withheld ?? lanes;
    this.streams = new TextStreams({ lanes: this.#lanes, lane, header: () => presentation.artifact });
  }

  get withheld(): string | undefined {
    return this.#withheld?.text;
  }

  get tokens(): Pick<TextStreams, 'token'> {
    return this.#deduplicator === undefined ? this.streams : this;
  }

  token(text: string, stream: string | undefined, origin?: TokenOrigin): void {
    if (stream === undefined && this.#deduplicator !== undefined) this.#write(this.#deduplicator.token(text), origin);
    else this.streams.token(text, stream, origin);
  }

  snapshot(text: string): void {
    if (this.#deduplicator === undefined) this.streams.snapshot(text);
    else this.#write(this.#deduplicator.snapshot(text));
  }

  artifact({ artifact, append, lastChunk: last, apart, source }: ArtifactChunk): void {
    const { artifactId: id, parts } = artifact;
    const { kinds, nestedPlan } = this.#presentation;
    const kind = kindOfArtifact(artifact, kinds);
    // Plans, notices and progress of a server below are not its answer, nor is a file of an agent behind it.
    const isOther =
      kind === undefined ? artifact.name !== undefined && this.#namesAnswer : kind !== 'answer' && kind !== 'result';
    const isApart = apart === true || isOther;
    this.#namesAnswer ||= kind === 'answer' || kind === 'plan';
    const others = isApart ? parts : parts.filter(part => part.text === undefined);
    if (others.length < parts.length) this.#artifactText({ id, isResult: kind === 'result', text: textOf(parts), append, last });
    if (others.length === 0) return;
    const shown = kind === 'plan' ? { ...artifact, name: nestedPlan } : artifact;
    this.#artifacts.take({ ...withKind(shown, kind), parts: others }, append, last, source);
  }

  ending(message: Message | undefined, standing: Standing | undefined): Message | undefined {
    const text = textOf(message?.parts ?? []);
    if (message === undefined || text === '') return message;
    const isShown = standing === 'repeats' || this.#isStreamed(text) || this.#takeEnding(text, standing);
    return isShown && isTextOnly(message) ? undefined : message;
  }

  wholeAnswer({ messageId, parts }: Message): undefined {
    this.artifact({ artifact: { artifactId: messageId, parts }, append: false, lastChunk: true });
  }

  #artifactText(chunk: ArtifactText): void {
    const { isResult, text, append, last } = chunk;
    if (this.#deduplicator !== undefined) {
      const isCopy = last && !append && this.#isStreamed(text);
      if (!isCopy) this.#write(this.#deduplicator.artifact(chunk));
      return;
    }
    if (isResult && !append) this.streams.snapshot(text);
    else this.streams.token(text, undefined);
    this.#tokensOnly &&= text === '';
  }

  /** True when one of the agent's streams has this text. */
  #isStreamed(text: string): boolean {
    return this.streams.all.some(({ stream, content }) => stream !== '' && content.text === text);
  }

  /** Returns true when the answer has the text. */
  #takeEnding(text: string, standing: Standing | undefined): boolean {
    if (standing === 'replaces') return this.#replaceAll(text);
    if (this.#deduplicator !== undefined) {
      const { covered, change } = this.#deduplicator.ending(text);
      this.#write(change);
      return covered;
    }
    const answer = this.streams.text;
    if (!isWholeAnswer(text, { answer, tokensOnly: this.#tokensOnly })) return answer.endsWith(text);
    this.streams.snapshot(text);
    return true;
  }

  #replaceAll(text: string): true {
    const [first, ...others] = this.streams.all;
    for (const { lane, header, content } of others) this.#lanes.write(lane, header, content.snapshot(''));
    if (first === undefined || first.stream === '') this.snapshot(text);
    else this.#lanes.write(first.lane, first.header, first.content.snapshot(text));
    return true;
  }

  #write(change: TextChange | undefined, origin?: TokenOrigin): void {
    if (change === undefined) return;
    const { lane, header } = this.streams.laneOf();
    this.#lanes.write(lane, header, change, origin);
  }
}
