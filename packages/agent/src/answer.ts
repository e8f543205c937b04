import { SaidText, type Saying } from './said-text.ts';

/** A chunk of an artifact's text, as the agent sent it. */
export type ArtifactText = { id: string; name: string | undefined; text: string; append: boolean; last: boolean };

/** Artifact names that hold the whole answer once more, of CAIPE supervisors and other Hoplines (S0-20, C-25). */
const WHOLE_ANSWER: ReadonlySet<string | undefined> = new Set(['partial_result', 'final_result']);

/**
 * `repeats`: text of the answer, not yet said again by this artifact, so that it is silent as long as it repeats. `start`: where the artifact's own text begins in the
 * answer; undefined when other text came in between.
 */
type Source = { own: string; repeats?: string | undefined; start?: number | undefined };

/**
 * The one answer of an agent that may say it in several ways: tokens, the whole text once more in an artifact, or in the message of its end (S2-2). What is repeated is not
 * said again; what is new is never dropped.
 */
export class Answer {
  readonly #said = new SaidText();
  readonly #sources = new Map<string, Source>();
  /** Artifacts that repeat and have not caught up. */
  readonly #repeating = new Set<Source>();
  /** No artifact has text of its own in the answer: all of it came loose, as tokens. */
  #loose = true;

  get text(): string {
    return this.#said.text;
  }

  get length(): number {
    return this.#said.length;
  }

  token(text: string): Saying | undefined {
    for (const source of this.#repeating) source.repeats += text;
    return this.#said.token(text);
  }

  snapshot(text: string): Saying | undefined {
    const saying = this.#said.snapshot(text);
    if (saying?.replace) {
      // What the artifacts said is gone with the rest; one that comes again is new.
      if (this.#sources.size > 0) this.#loose = false;
      this.#sources.clear();
    }
    this.#repeating.clear();
    return saying;
  }

  artifact(chunk: ArtifactText): Saying | undefined {
    if (WHOLE_ANSWER.has(chunk.name) && !chunk.append) return this.snapshot(chunk.text);
    const source = this.#sources.get(chunk.id);
    if (source === undefined) return chunk.last && !chunk.append ? this.#whole(chunk) : this.#begin(chunk);
    return chunk.append ? this.#goOn(source, chunk.text, chunk.last) : this.#again(source, chunk.text);
  }

  /**
   * The text of the message an agent ends with. It is the answer if there is none, if it goes on from it, or if it is no shorter than tokens that said something else.
   * Other texts, such as `Done.`, are not the answer, and never replace an artifact. `covered`: the answer has this text.
   */
  ending(text: string): { covered: boolean; saying: Saying | undefined } {
    const said = this.#said.text;
    const whole = text.startsWith(said) || (this.#loose && text.length >= said.length);
    return whole ? { covered: true, saying: this.snapshot(text) } : { covered: said.endsWith(text), saying: undefined };
  }

  /** An artifact in one piece. After loose text it is taken for the same answer in its final form, unless it is shorter. */
  #whole({ id, text }: ArtifactText): Saying | undefined {
    const said = this.#said.text;
    const whole = text.startsWith(said) || (this.#loose && text.length >= said.length);
    const saying = whole ? this.snapshot(text) : this.token(text);
    this.#sources.set(id, { own: text, start: whole ? 0 : said.length });
    this.#loose = false;
    return saying;
  }

  #begin({ id, text, last }: ArtifactText): Saying | undefined {
    const source: Source = { own: '' };
    this.#sources.set(id, source);
    if (this.#loose && this.#said.length > 0) this.#repeat(source);
    else source.start = this.#said.length;
    return this.#goOn(source, text, last);
  }

  #repeat(source: Source): void {
    source.repeats = this.#said.text;
    this.#repeating.add(source);
  }

  #goOn(source: Source, text: string, last: boolean): Saying | undefined {
    const { own: before, repeats } = source;
    source.own += text;
    if (repeats === undefined) return this.#live(source, text, before.length);
    if (repeats.startsWith(text) && !(last && repeats.length > text.length)) {
      source.repeats = repeats.slice(text.length);
      return undefined;
    }
    source.repeats = undefined;
    this.#repeating.delete(source);
    if (text.startsWith(repeats)) {
      source.start = 0;
      return this.#live(source, text.slice(repeats.length), before.length + repeats.length);
    }
    // It only began like the answer: it is another text, and all of it is new.
    source.start = this.#said.length;
    return this.#live(source, source.own, 0);
  }

  /** `lengthBefore`: how much of the source's own text stands in the answer. */
  #live(source: Source, text: string, lengthBefore: number): Saying | undefined {
    if (text === '') return undefined;
    if (source.start !== undefined && source.start + lengthBefore !== this.#said.length) source.start = undefined;
    this.#loose = false;
    return this.token(text);
  }

  /** The same artifact from its beginning: cumulative artifacts, and snapshots after a broken stream. */
  #again(source: Source, text: string): Saying | undefined {
    const { own, start } = source;
    if (source.repeats !== undefined) {
      source.own = '';
      this.#repeat(source);
      return this.#goOn(source, text, false);
    }
    source.own = text;
    if (text === own) return undefined;
    const said = this.#said.text;
    if (start === undefined) {
      // Where its text stands is not known any more: its rest is said, or all of it again rather than lost.
      return this.token(text.startsWith(own) ? text.slice(own.length) : text);
    }
    for (const other of this.#sources.values()) if (other !== source) other.start = undefined;
    return this.#said.snapshot(said.slice(0, start) + text + said.slice(start + own.length));
  }
}
