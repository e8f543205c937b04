import type { TextChange } from './lane-writer.ts';

/** Number of pieces that are joined together. */
const PIECES_MAX = 1_024;

/**
 * A text that grows piece by piece and is seldom read whole. Many pieces are joined at a time, because `+=` would create a rope node for
 * each token, and the nodes live as long as the text.
 */
export class GrowingText {
  #text: string;
  #pieces: string[] = [];
  #length: number;

  constructor(text = '') {
    this.#text = text;
    this.#length = text.length;
  }

  get text(): string {
    if (this.#pieces.length > 0) this.#join();
    return this.#text;
  }

  get length(): number {
    return this.#length;
  }

  /** Appends a piece. */
  add(piece: string): void {
    this.#pieces.push(piece);
    this.#length += piece.length;
    if (this.#pieces.length >= PIECES_MAX) this.#join();
  }

  /** Replaces the whole text. */
  protected replace(text: string): void {
    this.#text = text;
    this.#pieces = [];
    this.#length = text.length;
  }

  #join(): void {
    this.#text += this.#pieces.join('');
    this.#pieces = [];
  }
}

/** The text of one lane so far. It is kept whole because snapshots are compared with it. Bounded by TURN_TEXT_BYTES_MAX. */
export class LaneText extends GrowingText {
  token(text: string): TextChange | undefined {
    if (text === '') return undefined;
    this.add(text);
    return { replace: false, text };
  }

  /**
   * The whole text so far. An equal text changes nothing, a longer text with the same beginning adds its rest, and any other text replaces
   * it.
   */
  snapshot(text: string): TextChange | undefined {
    const before = this.text;
    if (text === before) return undefined;
    this.replace(text);
    if (text.startsWith(before)) return { replace: false, text: text.slice(before.length) };
    return { replace: true, text };
  }
}
