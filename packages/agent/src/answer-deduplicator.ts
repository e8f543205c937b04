import { GrowingText, LaneText } from './growing-text.ts';
import type { TextChange } from './lane-writer.ts';
import { isRepetition } from './repetition.ts';

/**
 * Artifacts of one answer that are tracked separately. Their number is bounded, because an agent may send each piece of its text as a new
 * artifact.
 */
export const ANSWER_ARTIFACTS_MAX = 1_024;

/** A chunk of an artifact's text as the agent sent it. `isResult`: the artifact repeats the whole answer (S0-20, C-25). */
export type ArtifactText = { id: string; isResult: boolean; text: string; append: boolean; last: boolean };

/**
 * The text of one artifact. `repeats`: the part of the answer that the artifact has not repeated yet. The artifact's text adds nothing as
 * long as it repeats that part. `start`: where its text begins in the answer; undefined when other text came in between.
 */
type ArtifactState = { content: GrowingText; repeats?: string | undefined; start?: number | undefined };

/**
 * Whether a text counts as the whole answer: the answer was empty, the text begins with it, or the text differs from the tokens but is at
 * least as long.
 */
export function isWholeAnswer(text: string, { answer, tokensOnly }: { answer: string; tokensOnly: boolean }): boolean {
  return text.startsWith(answer) || (tokensOnly && text.length >= answer.length);
}

/**
 * The single answer of an agent that may send it in several ways: as tokens, whole in an artifact, or in its last message (S2-2). Text that
 * repeats the answer adds nothing; new text is never dropped.
 */
export class AnswerDeduplicator {
  readonly #answer = new LaneText();
  readonly #artifacts = new Map<string, ArtifactState>();
  /** Artifacts that are repeating the answer and have not reached its end. */
  readonly #repeating = new Set<ArtifactState>();
  /** True while the whole answer has come as tokens and no artifact has had the whole text. */
  #tokensOnly = true;
  /** True if the answer has text that came only in an artifact. */
  #hasArtifactText = false;

  get text(): string {
    return this.#answer.text;
  }

  get length(): number {
    return this.#answer.length;
  }

  token(text: string): TextChange | undefined {
    for (const artifact of this.#repeating) artifact.repeats += text;
    return this.#answer.token(text);
  }

  snapshot(text: string): TextChange | undefined {
    const change = this.#answer.snapshot(text);
    if (change?.replace) {
      // The text of the artifacts is replaced as well, so an artifact that arrives again counts as new.
      if (this.#artifacts.size > 0) this.#tokensOnly = false;
      this.#hasArtifactText ||= this.#artifacts.size > 0;
      this.#artifacts.clear();
    }
    this.#repeating.clear();
    return change;
  }

  artifact(chunk: ArtifactText): TextChange | undefined {
    if (chunk.isResult && !chunk.append) return this.snapshot(chunk.text);
    const known = this.#artifacts.get(chunk.id);
    // An artifact begins with its first text. Until then it cannot repeat the answer.
    if (known === undefined && chunk.text === '') return undefined;
    if (known === undefined) return chunk.last && !chunk.append ? this.#whole(chunk) : this.#begin(chunk);
    return chunk.append ? this.#continue(known, chunk.text, chunk.last) : this.#restart(known, chunk.text);
  }

  /**
   * Takes the text of the message with which an agent ends. It is the answer under the conditions of `isWholeAnswer`. Other texts, such as
   * `Done.`, are not the answer and never replace an artifact. `covered`: the answer now contains the text.
   */
  ending(text: string): { covered: boolean; change: TextChange | undefined } {
    if (this.#isWhole(text)) return { covered: true, change: this.snapshot(text) };
    return { covered: this.#answer.text.endsWith(text), change: undefined };
  }

  #isWhole(text: string): boolean {
    return isWholeAnswer(text, { answer: this.#answer.text, tokensOnly: this.#tokensOnly });
  }

  /** Takes an artifact in one chunk. After tokens it counts as the final form of the same answer, unless it is shorter. */
  #whole({ id, text }: ArtifactText): TextChange | undefined {
    const lengthBefore = this.#answer.length;
    const isWhole = this.#isWhole(text);
    // An agent that works in steps may repeat its last step. Short artifacts may be equal by coincidence.
    const isEnd = !isWhole && (this.#tokensOnly || isRepetition(text)) && this.#answer.text.endsWith(text);
    const change = isWhole ? this.snapshot(text) : isEnd ? undefined : this.token(text);
    this.#keep(id, { content: new GrowingText(text), start: isWhole ? 0 : isEnd ? lengthBefore - text.length : lengthBefore });
    this.#tokensOnly = false;
    this.#hasArtifactText ||= change !== undefined;
    return change;
  }

  #begin({ id, text, last }: ArtifactText): TextChange | undefined {
    const artifact: ArtifactState = { content: new GrowingText() };
    this.#keep(id, artifact);
    if (!this.#hasArtifactText && this.#answer.length > 0) this.#repeat(artifact);
    else artifact.start = this.#answer.length;
    return this.#continue(artifact, text, last);
  }

  /** Drops the oldest artifact above the bound. If more of it arrives, that text is shown again rather than lost. */
  #keep(id: string, artifact: ArtifactState): void {
    const [oldest] = this.#artifacts.size < ANSWER_ARTIFACTS_MAX ? [] : this.#artifacts;
    if (oldest !== undefined) {
      this.#artifacts.delete(oldest[0]);
      this.#repeating.delete(oldest[1]);
    }
    this.#artifacts.set(id, artifact);
  }

  #repeat(artifact: ArtifactState): void {
    artifact.repeats = this.#answer.text;
    this.#repeating.add(artifact);
  }

  #continue(artifact: ArtifactState, text: string, last: boolean): TextChange | undefined {
    const { content, repeats } = artifact;
    const lengthBefore = content.length;
    content.add(text);
    if (repeats === undefined) return this.#add(artifact, text, lengthBefore);
    if (repeats.startsWith(text) && !(last && repeats.length > text.length)) {
      artifact.repeats = repeats.slice(text.length);
      return undefined;
    }
    artifact.repeats = undefined;
    this.#repeating.delete(artifact);
    if (text.startsWith(repeats)) {
      artifact.start = 0;
      return this.#add(artifact, text.slice(repeats.length), lengthBefore + repeats.length);
    }
    // The artifact only begins like the answer. It is a different text, and all of it is new.
    artifact.start = this.#answer.length;
    return this.#add(artifact, content.text, 0);
  }

  /** `lengthBefore`: length of the artifact's text that is already in the answer. */
  #add(artifact: ArtifactState, text: string, lengthBefore: number): TextChange | undefined {
    if (text === '') return undefined;
    if (artifact.start !== undefined && artifact.start + lengthBefore !== this.#answer.length) artifact.start = undefined;
    this.#tokensOnly = false;
    this.#hasArtifactText = true;
    return this.token(text);
  }

  /** Takes an artifact that starts again, either because it is cumulative or because it is a snapshot after a broken stream. */
  #restart(artifact: ArtifactState, text: string): TextChange | undefined {
    const { start } = artifact;
    const before = artifact.content.text;
    if (artifact.repeats !== undefined) {
      artifact.content = new GrowingText();
      this.#repeat(artifact);
      return this.#continue(artifact, text, false);
    }
    artifact.content = new GrowingText(text);
    if (text === before) return undefined;
    // The artifact's place in the answer is unknown, so its rest is added, or even the whole text again, rather than losing some of it.
    if (start === undefined) return this.token(text.startsWith(before) ? text.slice(before.length) : text);
    for (const other of this.#artifacts.values()) if (other !== artifact) other.start = undefined;
    const answer = this.#answer.text;
    return this.#answer.snapshot(answer.slice(0, start) + text + answer.slice(start + before.length));
  }
}
