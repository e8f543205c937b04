import { type Message, type Part, textOf } from '@hopline/a2a';
import type { AgentPresentation, ArtifactKind } from '@hopline/events';
import { kindOfArtifact, withKind } from '@hopline/profiles';
import type { AgentArtifacts } from './agent-artifacts.ts';
import { type AgentText, type ArtifactChunk, isTextOnly, type MessageRelation, type TextSink } from './agent-text.ts';
import type { LaneWriter, TextLanes } from './lane-writer.ts';
import { TextStreams } from './text-streams.ts';
import { RepeatedText, UniqueText, type UnstreamedText } from './unstreamed-text.ts';
import { WithheldText } from './withheld-text.ts';

type AnswerTextOptions = {
  lanes: LaneWriter;
  lane: string;
  presentation: Extract<AgentPresentation['text'], { as: 'answer' }>;
  artifacts: AgentArtifacts;
  /** Maximum UTF-16 units of an answer that the client does not see (policy `forwardText: false`); absent if the client sees it. */
  withheldUnitsMax?: number | undefined;
  /** The agent may send one text several times (`Agent.repeatsText`): the answer has it once (S2-2). */
  repeatsText: boolean;
  /** A whole plan, notice or line of progress from a server below, if the presentation has no artifact for it. */
  onProgress: (parts: Part[]) => void;
};

/**
 * A supervisor shows one answer, to which all text of the agent belongs, wherever the agent sends it. Other parts stay artifacts.
 * Concurrent streams are segments of the answer.
 */
export class AnswerText implements AgentText {
  readonly streams: TextStreams;
  readonly #presentation: AnswerTextOptions['presentation'];
  readonly #artifacts: AgentArtifacts;
  readonly #unstreamed: UnstreamedText;
  readonly #withheld: WithheldText | undefined;
  readonly #lanes: TextLanes;
  readonly #onProgress: AnswerTextOptions['onProgress'];
  /** True for a server that marks the artifacts of its answer by name. Artifacts with other names are separate from the answer. */
  #namesAnswer = false;

  constructor({ lanes, lane, presentation, artifacts, withheldUnitsMax, repeatsText, onProgress }: AnswerTextOptions) {
    this.#presentation = presentation;
    this.#artifacts = artifacts;
    this.#withheld = withheldUnitsMax === undefined ? undefined : new WithheldText(lanes, withheldUnitsMax);
    this.#onProgress = onProgress;
    this.#lanes = this.#withheld ?? lanes;
    this.streams = new TextStreams({ lanes: this.#lanes, lane, header: () => presentation.artifact });
    this.#unstreamed = repeatsText ? new RepeatedText(this.streams, this.#lanes) : new UniqueText(this.streams);
  }

  get withheld(): string | undefined {
    return this.#withheld?.text;
  }

  get sink(): TextSink {
    return this.#unstreamed.sink;
  }

  artifact(chunk: ArtifactChunk): void {
    const { artifact, append, lastChunk: last, apart } = chunk;
    const { artifactId: id, parts } = artifact;
    const { kinds, nestedPlan } = this.#presentation;
    const kind = kindOfArtifact(artifact, kinds);
    // Not part of the answer: plans, notices and progress of a server below, and files of an agent behind it.
    const isOther =
      kind === undefined ? artifact.name !== undefined && this.#namesAnswer : kind !== 'answer' && kind !== 'result';
    const isApart = apart === true || isOther;
    this.#namesAnswer ||= kind === 'answer' || kind === 'plan';
    const others = isApart ? parts : parts.filter(part => part.text === undefined);
    if (others.length < parts.length)
      this.#unstreamed.artifact({ id, isResult: kind === 'result', text: textOf(parts), append, last });
    if (others.length === 0) return;
    if (nestedPlan === undefined && isProgress(kind)) {
      // A plan that was still being streamed is sent once more, complete.
      if (!append && (last || kind === 'progress')) this.#onProgress(others);
      return;
    }
    const shown = kind === 'plan' ? { ...artifact, ...(nestedPlan !== undefined && { name: nestedPlan }) } : artifact;
    this.#artifacts.take({ ...chunk, artifact: { ...withKind(shown, kind), parts: others } });
  }

  ending(message: Message | undefined, standing: MessageRelation | undefined): Message | undefined {
    const text = textOf(message?.parts ?? []);
    if (message === undefined || text === '') return message;
    const isShown = standing === 'repeats' || this.streams.isStreamed(text) || this.#takeEnding(text, standing);
    return isShown && isTextOnly(message) ? undefined : message;
  }

  wholeAnswer({ messageId, parts }: Message): undefined {
    this.artifact({ artifact: { artifactId: messageId, parts }, append: false, lastChunk: true });
  }

  /** Returns true when the answer has the text. */
  #takeEnding(text: string, standing: MessageRelation | undefined): boolean {
    return standing === 'replaces' ? this.#replaceAll(text) : this.#unstreamed.ending(text);
  }

  #replaceAll(text: string): true {
    const [first, ...others] = this.streams.all;
    for (const { lane, header, content } of others) this.#lanes.write(lane, header, content.snapshot(''));
    if (first === undefined || first.stream === '') this.sink.snapshot(text);
    else this.#lanes.write(first.lane, first.header, first.content.snapshot(text));
    return true;
  }
}

function isProgress(kind: ArtifactKind | undefined): boolean {
  return kind === 'plan' || kind === 'call-start' || kind === 'call-end' || kind === 'progress';
}
