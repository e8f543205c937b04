import { type Artifact, type TaskArtifactUpdateEvent, textOf } from '@hopline/a2a';
import { artifactKind } from '@hopline/profiles';

/** Where the text of the answer goes. What is shown cannot be taken back. */
export type AnswerSink = {
  text(text: string): void;
  /** What was shown is void; the answer begins again. */
  again(): void;
};

/** One artifact of the answer. */
type Segment = {
  shown: string;
  /** Waits for the segments before it. */
  rest: string;
  /** Was shown of a text that has been replaced since, by one that has not caught up yet. */
  before: string;
  closed: boolean;
};

/** Holds the whole answer of a turn once more (S0-20, C-25). */
const isResult = ({ name }: Artifact) => artifactKind(name) === 'result';

/**
 * Shows the answer of a task as it comes: the texts of its artifacts in order of opening (C-28), each once. Agents that speak at the same time are shown one after the other; a text that is replaced
 * by the next attempt of its agent is not shown again as far as it is the same.
 */
export class Answer {
  readonly #sink: AnswerSink;
  /** Of the turn that is shown, by artifact id. */
  #segments = new Map<string, Segment>();
  /** Artifacts of turns that are over: a snapshot holds them still. */
  readonly #done = new Set<string>();
  readonly #resumed: boolean;
  #whole = '';
  #last = '';

  /** `resumed`: something of the answer was shown to somebody before, nobody knows how much. */
  constructor(sink: AnswerSink, resumed = false) {
    this.#sink = sink;
    this.#resumed = resumed;
  }

  /** What was shown of this turn, or of the one before as long as nothing of this one was. */
  get shown(): string {
    return this.#shownFrom(0) || this.#last;
  }

  update({ artifact, append = false, lastChunk = false }: TaskArtifactUpdateEvent): void {
    const text = textOf(artifact.parts);
    if (!isResult(artifact)) {
      this.#put(artifact.artifactId, text, append, lastChunk);
      this.#pump();
      return;
    }
    this.#done.add(artifact.artifactId);
    this.#whole = append ? this.#whole + text : text;
    if (lastChunk) this.#reconcile();
  }

  /** The task as it is, in the middle of a stream or instead of one. */
  snapshot(artifacts: readonly Artifact[]): void {
    for (const artifact of artifacts.filter(({ artifactId }) => !this.#done.has(artifactId))) {
      this.update({ taskId: '', contextId: '', artifact, append: false, lastChunk: isResult(artifact) });
    }
  }

  /** These belong to turns before the one that is shown. */
  skip(artifacts: readonly Artifact[]): void {
    for (const { artifactId } of artifacts) this.#done.add(artifactId);
  }

  /** The turn is over: nothing is held back any more. */
  end(): void {
    this.#closeAll();
    this.#turn();
  }

  #closeAll(): void {
    for (const segment of this.#segments.values()) segment.closed = true;
    this.#pump();
  }

  #put(id: string, text: string, append: boolean, closed: boolean): void {
    const known = this.#segments.get(id);
    if (known === undefined) this.#segments.set(id, { shown: '', rest: text, before: '', closed });
    else if (append) {
      known.rest += text;
      known.closed = closed;
    } else this.#segments.set(id, { shown: '', rest: text, before: known.before || known.shown, closed });
  }

  #pump(): void {
    for (const segment of this.#segments.values()) {
      if (segment.before !== '' && !this.#catchUp(segment)) return;
      this.#sink.text(segment.rest);
      segment.shown += segment.rest;
      segment.rest = '';
      if (!segment.closed) return;
    }
  }

  /** False: the new attempt still says what the dead one had said, or all began again. */
  #catchUp(segment: Segment): boolean {
    const { rest, before, closed } = segment;
    if (rest.startsWith(before)) {
      Object.assign(segment, { shown: before, rest: rest.slice(before.length), before: '' });
      return true;
    }
    if (before.startsWith(rest) && !closed) return false;
    this.#sink.again();
    for (const one of this.#segments.values()) Object.assign(one, { shown: '', rest: one.shown + one.rest, before: '' });
    this.#pump();
    return false;
  }

  /** The whole answer is there: what of it was not shown is shown. A turn that follows others has their segments before its own. */
  #reconcile(): void {
    this.#closeAll();
    const whole = this.#whole;
    const starts = Array.from({ length: this.#segments.size }, (_, from) => this.#shownFrom(from));
    const shown = starts.find(one => one !== '' && whole.startsWith(one));
    if (!this.#resumed) {
      if (shown === undefined && starts[0]) this.#sink.again();
      this.#sink.text(whole.slice(shown?.length));
    }
    this.#turn(whole);
  }

  #shownFrom(index: number): string {
    return [...this.#segments.values()]
      .slice(index)
      .map(({ shown, before }) => before || shown)
      .join('');
  }

  #turn(shown = this.shown): void {
    this.#last = shown;
    this.#whole = '';
    for (const id of this.#segments.keys()) this.#done.add(id);
    this.#segments = new Map();
  }
}
