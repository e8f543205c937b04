/** The turns of an agent that run in this process. No hop ends while one hangs, so no histogram shows it. */
export class SilentTurns {
  readonly #turns = new Set<{ readonly silentMs: number }>();

  /** Returns a function that removes the turn. */
  add(turn: { readonly silentMs: number }): () => void {
    this.#turns.add(turn);
    return () => void this.#turns.delete(turn);
  }

  /** Milliseconds since the last event of the turn that has been silent longest; 0 without a turn. */
  get longestMs(): number {
    let longest = 0;
    for (const { silentMs } of this.#turns) longest = Math.max(longest, silentMs);
    return longest;
  }
}
