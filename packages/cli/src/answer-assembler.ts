import { type Artifact, type TaskArtifactUpdateEvent, textOf } from '@hopline/a2a';
import { artifactKind } from '@hopline/profiles';

/** What a heading over the text of an artifact needs. */
export type ArtifactLabel = Pick<Artifact, 'artifactId' | 'name' | 'description'>;

/** Receives the text of the answer. Printed text cannot be taken back. */
export type AnswerSink = {
  text(text: string, artifact: ArtifactLabel): void;
  /**
   * All text so far is void; the answer starts over, because an agent was restarted, or because the whole answer at the end
   * differs from the streamed text.
   */
  restart(cause: 'retry' | 'whole'): void;
  /** This artifact contains the whole answer once more; all of its text is printed already. */
  duplicate(artifact: ArtifactLabel, characters: number): void;
};

/** One artifact of the answer. */
type Segment = {
  label: ArtifactLabel;
  printed: string;
  /** Waits for the segments before it. */
  pending: string;
  /** Printed text of an earlier version, until the version that replaces it has caught up. */
  superseded: string;
  closed: boolean;
};

/** Repeats the whole answer of a turn. */
const isWholeAnswer = ({ name }: Artifact): boolean => artifactKind(name) === 'result';

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

  /** The printed text of this turn; of the previous turn as long as this one has none. */
  get printed(): string {
    return this.#printedFrom(0) || this.#previous;
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

  /** Ignores artifacts of earlier turns. */
  skip(artifacts: readonly Artifact[]): void {
    for (const { artifactId } of artifacts) this.#finished.add(artifactId);
  }

  /** Ends the turn and prints what still waits. */
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
    this.#segments.set(label.artifactId, { label, printed: '', pending: text, superseded, closed });
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

  /** False: the retry still repeats what the failed attempt had written, or the answer started over. */
  #catchUp(segment: Segment): boolean {
    const { pending, superseded, closed } = segment;
    if (pending.startsWith(superseded)) {
      Object.assign(segment, { printed: superseded, pending: pending.slice(superseded.length), superseded: '' });
      return true;
    }
    if (superseded.startsWith(pending) && !closed) return false;
    this.#sink.restart('retry');
    for (const one of this.#segments.values()) {
      Object.assign(one, { printed: '', pending: one.printed + one.pending, superseded: '' });
    }
    this.#flush();
    return false;
  }

  /** The whole answer has arrived: prints the part of it that is missing. Segments of earlier turns may precede its own. */
  #reconcile(label: ArtifactLabel): void {
    this.#closeAll();
    const whole = this.#whole;
    const suffixes = Array.from({ length: this.#segments.size }, (_, from) => this.#printedFrom(from));
    const printed = suffixes.find(text => text !== '' && whole.startsWith(text));
    if (!this.#resumed) {
      if (printed === undefined && suffixes[0]) this.#sink.restart('whole');
      const missing = whole.slice(printed?.length);
      if (missing !== '') this.#sink.text(missing, label);
      else if (whole !== '') this.#sink.duplicate(label, whole.length);
    }
    this.#finishTurn(whole);
  }

  #printedFrom(index: number): string {
    return [...this.#segments.values()]
      .slice(index)
      .map(({ printed, superseded }) => superseded || printed)
      .join('');
  }

  #finishTurn(printed = this.printed): void {
    this.#previous = printed;
    this.#whole = '';
    for (const id of this.#segments.keys()) this.#finished.add(id);
    this.#segments = new Map();
  }
}
