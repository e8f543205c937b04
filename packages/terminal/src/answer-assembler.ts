import { type Artifact, type TaskArtifactUpdateEvent, textOf } from '@hopline/a2a';
import { kindOfArtifact } from '@hopline/profiles';

/** The data for a heading over the text of an artifact; `metadata` names its agent. */
export type ArtifactLabel = Pick<Artifact, 'artifactId' | 'name' | 'description' | 'metadata'>;

/** Receives the text of the answer. Printed text cannot be taken back. */
export type AnswerSink = {
  text(text: string, artifact: ArtifactLabel): void;
  /**
   * All text so far is void and the answer starts over, because an agent was restarted, or because the whole answer at the end differs from
   * the streamed text.
   */
  restart(cause: 'retry' | 'whole'): void;
  /** This artifact repeats the whole answer, all of which is printed already. */
  duplicate(artifact: ArtifactLabel, characters: number): void;
};

/** One artifact of the answer. */
type Segment = {
  label: ArtifactLabel;
  printed: string;
  /** The segment waits for those before it. */
  pending: string;
  /** Printed text of an earlier version, kept until its replacement has caught up. */
  superseded: string;
  /** Characters of `superseded` that the new version has repeated; `pending` follows them. */
  repeated: number;
  closed: boolean;
};

/** The segment repeats the whole answer of a turn. */
const isWholeAnswer = (artifact: Artifact): boolean => kindOfArtifact(artifact) === 'result';

/**
 * Assembles the answer of a task from its stream: the texts of its artifacts in the order in which they opened, each once.
 * Agents that write at the same time are printed one after the other. When a retry replaces the text of its agent, the part
 * that is equal is not printed again.
 */
export class AnswerAssembler {
  readonly #sink: AnswerSink;
  /** Segments of the current turn, by artifact id. */
  #segments = new Map<string, Segment>();
  /** Artifacts of finished turns; snapshots still contain them. */
  readonly #finished = new Set<string>();
  readonly #resumed: boolean;
  #whole = '';
  #previous = '';

  /** `resumed`: an unknown part of the answer was printed before the stream began. */
  constructor(sink: AnswerSink, resumed = false) {
    this.#sink = sink;
    this.#resumed = resumed;
  }

  /** The printed text of this turn, or of the previous turn while this one has none. */
  get printed(): string {
    return this.#printedTexts().join('') || this.#previous;
  }

  update({ artifact, append = false, lastChunk = false }: TaskArtifactUpdateEvent): void {
    const text = textOf(artifact.parts);
    if (!isWholeAnswer(artifact)) {
      this.#store(artifact, text, append, lastChunk);
      this.#flush();
      return;
    }
    this.#finished.add(artifact.artifactId);
    this.#whole = append ? this.#whole + text : text;
    if (lastChunk) this.#reconcile(artifact);
  }

  /** The complete task, within a stream (after a gap) or instead of one. */
  snapshot(artifacts: readonly Artifact[]): void {
    for (const artifact of artifacts.filter(({ artifactId }) => !this.#finished.has(artifactId))) {
      this.update({ taskId: '', contextId: '', artifact, append: false, lastChunk: isWholeAnswer(artifact) });
    }
  }

  /** Ignores artifacts of earlier turns from now on. */
  skip(artifacts: readonly Artifact[]): void {
    for (const { artifactId } of artifacts) this.#finished.add(artifactId);
  }

  /** Ends the turn and prints the text that still waits. */
  end(): void {
    this.#closeAll();
    this.#finishTurn();
  }

  #closeAll(): void {
    for (const segment of this.#segments.values()) segment.closed = true;
    this.#flush();
  }

  #store(label: ArtifactLabel, text: string, append: boolean, closed: boolean): void {
    const existing = this.#segments.get(label.artifactId);
    if (existing !== undefined && append) {
      existing.pending += text;
      existing.closed = closed;
      return;
    }
    const superseded = existing === undefined ? '' : existing.superseded || existing.printed;
    this.#segments.set(label.artifactId, { label, printed: '', pending: text, superseded, repeated: 0, closed });
  }

  #flush(): void {
    for (const segment of this.#segments.values()) {
      if (segment.superseded !== '' && !this.#catchUp(segment)) return;
      if (segment.pending !== '') this.#sink.text(segment.pending, segment.label);
      segment.printed += segment.pending;
      segment.pending = '';
      if (!segment.closed) return;
    }
  }

  /** Returns false while the retry only repeats the failed attempt, or when the answer started over. */
  #catchUp(segment: Segment): boolean {
    const { pending, superseded, repeated, closed } = segment;
    // Compares only the new text, because a long text may come in many small parts.
    const expected = superseded.slice(repeated, repeated + pending.length);
    const isRepeated = pending.startsWith(expected);
    if (isRepeated && repeated + expected.length === superseded.length) {
      Object.assign(segment, { printed: superseded, pending: pending.slice(expected.length), superseded: '', repeated: 0 });
      return true;
    }
    if (isRepeated && !closed) {
      Object.assign(segment, { pending: '', repeated: repeated + pending.length });
      return false;
    }
    this.#sink.restart('retry');
    for (const one of this.#segments.values()) {
      const own = one.superseded.slice(0, one.repeated) + one.printed + one.pending;
      Object.assign(one, { printed: '', pending: own, superseded: '', repeated: 0 });
    }
    this.#flush();
    return false;
  }

  /** The whole answer has arrived: prints the part of it that is missing. Segments of earlier turns may precede its own. */
  #reconcile(label: ArtifactLabel): void {
    this.#closeAll();
    const whole = this.#whole;
    const all = this.#printedTexts().join('');
    const printed = this.#printedBeginningOf(whole, all);
    if (!this.#resumed) {
      if (printed === '' && all !== '') this.#sink.restart('whole');
      const missing = whole.slice(printed.length);
      if (missing !== '') this.#sink.text(missing, label);
      else if (whole !== '') this.#sink.duplicate(label, whole.length);
    }
    this.#finishTurn(whole);
  }

  /** The printed text with which the whole answer begins: the text of as many of the newest segments as possible. */
  #printedBeginningOf(whole: string, all: string): string {
    let start = 0;
    for (const text of this.#printedTexts()) {
      // A slice to the end of a text does not copy it.
      if (whole.startsWith(all.slice(start))) return all.slice(start);
      start += text.length;
    }
    return '';
  }

  #printedTexts(): string[] {
    return [...this.#segments.values()].map(({ printed, superseded }) => superseded || printed);
  }

  #finishTurn(printed = this.printed): void {
    this.#previous = printed;
    this.#whole = '';
    for (const id of this.#segments.keys()) this.#finished.add(id);
    this.#segments = new Map();
  }
}
