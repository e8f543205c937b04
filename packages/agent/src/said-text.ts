/** What to put on a lane: more text, or a text that replaces everything before it. */
export type Saying = { replace: boolean; text: string };

/**
 * The text one lane holds so far. Kept whole, because a snapshot is compared with it; V8 keeps a string that is built by `+=` as a rope, so a token costs the
 * same at 100,000 tokens as at 1,000 (measured in said-text.test.ts), and only a comparison walks it. Bounded by TURN_TEXT_BYTES_MAX.
 */
export class SaidText {
  #said = '';

  get text(): string {
    return this.#said;
  }

  get length(): number {
    return this.#said.length;
  }

  token(text: string): Saying | undefined {
    if (text === '') return undefined;
    this.#said += text;
    return { replace: false, text };
  }

  /** The whole so far: equal adds nothing, a longer one that goes on from it adds the rest, any other replaces it. */
  snapshot(text: string): Saying | undefined {
    const said = this.#said;
    if (text === said) return undefined;
    this.#said = text;
    if (text.startsWith(said)) return { replace: false, text: text.slice(said.length) };
    return { replace: true, text };
  }
}
