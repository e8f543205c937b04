/** The turns of an agent that run in this process. While a turn hangs, none of its hops ends, so no histogram shows it. */
export class SilentTurns {
  readonly #turns = new Set<{ readonly silentMs: number }>();

  /** Returns a function that removes the turn. */
  add(turn: { readonly silentMs: number }): () => void {
    this.#turns.add(turn);
    return () => void this.#turns.delete(turn);
  }

  /** Milliseconds since the last event of the turn that has been silent the longest; 0 if no turn runs. */
  get longestMs(): number {
    let longest = 0;
    for (const { silentMs } of this.#turns) longest = Math.max(longest, silentMs);
    return longest;
  }
}
