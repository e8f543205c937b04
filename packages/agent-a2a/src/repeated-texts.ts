import { type AgentEvent, GrowingText, isRepetition } from '@hopline/agent';

/** Maximum number of artifacts of one turn that are kept for comparison with texts and snapshots. */
export const ARTIFACTS_MAX = 1024;

export type ReceivedText = { text: string; id: string };

type ArtifactText = { text: GrowingText; isWhole: boolean };
/** A possible copy of artifacts. `rest`: the part that it has not repeated yet. */
type Mirror = { of: string; held: ReceivedText[]; rest: string };

/**
 * Removes those pieces of an answer that repeat it. Each piece is the text of a status: Google ADK streams deltas, then sends
 * the whole text as a status, then as an artifact. Two forms are recognized by their text:
 *
 * - One piece is equal to all pieces since the last repetition. It is held until the next event: a whole text that follows, or that came
 *   earlier as an artifact, decides. If there is none, the piece is a repetition if it is so long that no model emits it as a piece.
 * - The pieces, from the first on, are the text of the artifacts before them. They are held as long as they repeat it.
 *
 * `events`: receives the other pieces.
 */
export class RepeatedTexts {
  /** The pieces since the last repetition, and the text that was repeated then. */
  #pieces = new GrowingText();
  #repeated: string | undefined;
  /** A held text that equals `#pieces`, or `#repeated` when no piece has followed. */
  #held: ReceivedText | undefined;
  readonly #artifacts = new Map<string, ArtifactText>();
  #newest: { id: string; artifact: ArtifactText } | undefined;
  #mirror: Mirror | undefined;

  take(piece: ReceivedText, events: AgentEvent[]): void {
    this.settle(events);
    const text = this.#mirror === undefined ? piece.text : this.#continueMirror(this.#mirror, piece, events);
    if (text === '') return;
    const rest = text === piece.text ? piece : { ...piece, text };
    if (this.#isRepeated(text)) this.#hold(rest);
    else if (this.#pieces.length > 0 ? !this.#isLongArtifact(text) : !this.#beginMirror(rest)) this.#emit(rest, events);
  }

  /** The agent sends a text that may be its whole answer, which decides about the held text. */
  compare(whole: string, events: AgentEvent[]): void {
    const held = this.#held;
    if (held === undefined) return;
    if (whole === held.text) this.#drop(held.text);
    else if (whole === this.#pieces.text + held.text) this.#release(held, events);
  }

  /** Another event follows, which does not decide about the held text. */
  settle(events: AgentEvent[]): void {
    const held = this.#held;
    if (held === undefined) return;
    if (isRepetition(held.text)) this.#drop(held.text);
    else this.#release(held, events);
  }

  /** No text follows. A copy that stayed incomplete was a new text. */
  end(events: AgentEvent[]): void {
    this.settle(events);
    const mirror = this.#mirror;
    this.#mirror = undefined;
    if (mirror !== undefined && mirror.rest !== '') for (const piece of mirror.held) this.#emit(piece, events);
  }

  /** Returns the text of the artifact so far. */
  artifact(id: string, text: string, { append, last }: { append: boolean; last: boolean }): GrowingText {
    const artifact = this.#artifacts.get(id) ?? this.#open(id);
    const before = append ? '' : artifact.text.text;
    const isGrown = text.startsWith(before);
    if (!isGrown) artifact.text = new GrowingText();
    const added = isGrown ? text.slice(before.length) : text;
    artifact.text.add(added);
    artifact.isWhole = last;
    if (this.#mirror?.of === id && isGrown) this.#mirror.rest += added;
    return artifact.text;
  }

  /** Whether the text equals that of an artifact that has ended. */
  isArtifact(text: string): boolean {
    for (const artifact of this.#artifacts.values()) if (isWhole(artifact, text)) return true;
    return false;
  }

  #isRepeated(text: string): boolean {
    if (this.#pieces.length === 0) return text === this.#repeated;
    return text.length === this.#pieces.length && text === this.#pieces.text;
  }

  #isLongArtifact(text: string): boolean {
    return this.#newest !== undefined && isWhole(this.#newest.artifact, text) && isRepetition(text);
  }

  #open(id: string): ArtifactText {
    const artifact = { text: new GrowingText(), isWhole: false };
    for (const oldest of this.#artifacts.size < ARTIFACTS_MAX ? [] : this.#artifacts.keys()) {
      this.#artifacts.delete(oldest);
      break;
    }
    this.#artifacts.set(id, artifact);
    this.#newest = { id, artifact };
    return artifact;
  }

  #hold(piece: ReceivedText): void {
    if (this.isArtifact(piece.text)) this.#drop(piece.text);
    else this.#held = piece;
  }

  #drop(text: string): void {
    this.#held = undefined;
    this.#repeated = text;
    this.#pieces = new GrowingText();
  }

  #release(piece: ReceivedText, events: AgentEvent[]): void {
    this.#held = undefined;
    this.#emit(piece, events);
  }

  #emit({ text, id }: ReceivedText, events: AgentEvent[]): void {
    this.#pieces.add(text);
    events.push({ type: 'text', text, ...(id !== '' && { id }) });
  }

  #beginMirror(piece: ReceivedText): boolean {
    if (this.#newest === undefined || this.#repeated !== undefined) return false;
    const { id, artifact } = this.#newest;
    const all = [...this.#artifacts.values()].map(({ text }) => text.text).join('');
    const base = [artifact.text.text, all].find(text => text.startsWith(piece.text));
    if (base === undefined) return false;
    this.#mirror = { of: id, held: [piece], rest: base.slice(piece.text.length) };
    return true;
  }

  /** Returns the part of the piece that the artifacts do not have. While the piece repeats them, that is nothing. */
  #continueMirror(mirror: Mirror, piece: ReceivedText, events: AgentEvent[]): string {
    const { text } = piece;
    const { held, rest } = mirror;
    if (rest.startsWith(text)) {
      held.push(piece);
      mirror.rest = rest.slice(text.length);
      return '';
    }
    this.#mirror = undefined;
    if (text.startsWith(rest)) {
      this.#drop(held.map(({ text }) => text).join('') + rest);
      return text.slice(rest.length);
    }
    // The pieces only begin like the artifacts. They are a different text, and all of it is new.
    for (const one of held) this.#emit(one, events);
    return text;
  }
}

function isWhole(artifact: ArtifactText, text: string): boolean {
  return artifact.isWhole && artifact.text.length === text.length && artifact.text.text === text;
}
