import { type Artifact, type TaskArtifactUpdateEvent, textOf } from '@hopline/a2a';

/** Where the text of the answer goes. What is shown cannot be taken back. */
export type AnswerSink = {
  text(text: string): void;
  /** What was shown is void; the answer begins again. */
  again(): void;
};

/** One artifact of the answer. */
type Segment = { text: string; closed: boolean; shown: number; /** Was shown of a text that has been replaced since. */ before: string };

/** Artifacts of a supervisor that hold the whole answer of a turn once more (S0-20, C-25). */
const WHOLE = new Set<string | undefined>(['partial_result', 'final_result']);

/**
 * Shows the answer of a task as it comes: the texts of its artifacts in order of opening (C-28), each once. Agents that speak at the same time are shown one after the other; a text that is replaced
 * by the next attempt of its agent is not shown again as far as it is the same.
 */
export class Answer {
  readonly #sink: AnswerSink;
  /** Of the turn that is shown, by artifact id. */
  #segments = new Map<string, Segment>();
  #whole = '';
  #last = '';

  constructor(sink: AnswerSink) {
    this.#sink = sink;
  }

  /** What was shown of this turn, or of the one before as long as nothing of this one was. */
  get shown(): string {
    return this.#shownFrom(0) || this.#last;
  }

  update({ artifact, append = false, lastChunk = false }: TaskArtifactUpdateEvent): void {
    const text = textOf(artifact.parts);
    if (WHOLE.has(artifact.name)) {
      this.#whole = append ? this.#whole + text : text;
      if (lastChunk) this.#reconcile();
      return;
    }
    this.#put(artifact.artifactId, text, append, lastChunk);
    this.#pump();
  }

  /** The task as it is, in the middle of a stream or instead of one. */
  snapshot(artifacts: readonly Artifact[]): void {
    for (const artifact of artifacts) {
      const whole = WHOLE.has(artifact.name);
      this.update({ taskId: '', contextId: '', artifact, append: false, lastChunk: whole });
    }
  }

  /** What these artifacts hold was shown to somebody before. */
  skip(artifacts: readonly Artifact[]): void {
    for (const { artifactId, name, parts } of artifacts) {
      const text = textOf(parts);
      if (!WHOLE.has(name)) this.#segments.set(artifactId, { text, closed: true, shown: text.length, before: '' });
    }
  }

  /** The turn is over: nothing is held back any more. */
  end(): void {
    for (const segment of this.#segments.values()) segment.closed = true;
    this.#pump();
    this.#turn();
  }

  #put(id: string, text: string, append: boolean, closed: boolean): void {
    const known = this.#segments.get(id);
    if (known === undefined) this.#segments.set(id, { text, closed, shown: 0, before: '' });
    else if (append) {
      known.text += text;
      known.closed = closed;
    } else {
      // An attempt that is replaced before it has caught up has shown nothing new.
      const before = known.before || known.text.slice(0, known.shown);
      this.#segments.set(id, { text, closed, shown: 0, before });
    }
  }

  #pump(): void {
    for (const segment of this.#segments.values()) {
      if (segment.before !== '' && !this.#catchUp(segment)) return;
      if (segment.shown < segment.text.length) {
        this.#sink.text(segment.text.slice(segment.shown));
        segment.shown = segment.text.length;
      }
      if (!segment.closed) return;
    }
  }

  /** False: the new attempt still says what the dead one had said, or all begins again. */
  #catchUp(segment: Segment): boolean {
    const { text, before, closed } = segment;
    if (text.startsWith(before)) {
      segment.shown = before.length;
      segment.before = '';
      return true;
    }
    if (before.startsWith(text) && !closed) return false;
    this.#sink.again();
    for (const one of this.#segments.values()) Object.assign(one, { shown: 0, before: '' });
    this.#pump();
    return false;
  }

  /** The whole answer is there: what of it was not shown is shown. A turn that follows others has their segments before its own. */
  #reconcile(): void {
    const whole = this.#whole;
    const starts = Array.from({ length: this.#segments.size }, (_, from) => this.#shownFrom(from));
    const shown = starts.find(one => one !== '' && whole.startsWith(one));
    if (shown !== undefined) this.#sink.text(whole.slice(shown.length));
    else if (!starts[0]) this.#sink.text(whole);
    else if (!starts[0].endsWith(whole)) {
      this.#sink.again();
      this.#sink.text(whole);
    }
    this.#last = whole;
    this.#turn();
  }

  #shownFrom(index: number): string {
    return [...this.#segments.values()]
      .slice(index)
      .map(({ text, shown, before }) => before || text.slice(0, shown))
      .join('');
  }

  #turn(): void {
    this.#last = this.shown;
    this.#whole = '';
    // Kept without their text: what comes late of them was shown with the whole.
    this.#segments = new Map();
  }
}
