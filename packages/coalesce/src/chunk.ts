/** One token as the source said it. `R` is the caller's provenance: whatever it needs to find the token again. */
export type Token<R> = {
  /** Any UTF-16 text: empty, white space only, or half a surrogate pair. Never changed, trimmed or joined with a separator. */
  text: string;
  /** Source time in milliseconds, carried for statistics only: decisions use the `nowMs` of the call. */
  atMs: number;
  ref: R;
};

/**
 * Why a chunk left:
 * - `each`: pass-through, one chunk per token;
 * - `first`: the first text of its lane, held at most `FIRST_HOLD_MS`;
 * - `ready`: waiting for the next token would have cost more than it saves, decided at the last token itself;
 * - `quiet`: the next token did not come within the time worth waiting for it;
 * - `delay`: the summed delay reached its allowance (the bound that keeps the cost within twice the optimum);
 * - `age`: the oldest token reached `holdMsMax`;
 * - `size`: one more token would have passed `chunkBytesMax`, or a token alone does;
 * - `boundary`: a non-text event follows;
 * - `close`: the lane ends.
 */
export const FLUSH_REASONS = ['each', 'first', 'ready', 'quiet', 'delay', 'age', 'size', 'boundary', 'close'] as const;
export type FlushReason = (typeof FLUSH_REASONS)[number];

export type Chunk<R> = {
  lane: string;
  text: string;
  /** The oldest token with text in this chunk, and the newest. */
  first: R;
  last: R;
  /** Tokens that end in this chunk. Over all chunks of a lane this adds up to the tokens offered, so an empty token counts too. */
  count: number;
  /**
   * Only when the chunk ends inside `last`: UTF-16 units of that token that are out with this chunk, 1 or more; the rest follows in the lane's next chunk.
   * Happens when a token is over `chunkBytesMax`, and when a forced flush finds half a surrogate pair.
   */
  lastOffset?: number;
  reason: FlushReason;
  /** Milliseconds the oldest token was held here. */
  heldMs: number;
  /** `atMs` of `first` and `last`. */
  firstAtMs: number;
  lastAtMs: number;
};
