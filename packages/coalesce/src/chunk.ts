/** One token as the source produced it. The caller keeps its provenance and finds it again by the counts of the chunks. */
export type Token = {
  /** Any UTF-16 text, even an empty one, only white space, or half a surrogate pair. Never changed, trimmed or joined with a separator. */
  text: string;
  /** Source time in milliseconds, for statistics only: decisions use the `nowMs` of the call. */
  atMs: number;
};

/**
 * Why a chunk was sent:
 * - `each`: pass-through, one chunk per token;
 * - `first`: the first text of its lane, sent at once;
 * - `ready`: at the last token it was clear that waiting for the next one costs more than it saves;
 * - `producer`: its producer has already held it by the same rule;
 * - `quiet`: the next token did not arrive within the time worth waiting for it;
 * - `delay`: the summed delay reached its bound, which keeps the cost within twice the optimum;
 * - `age`: the oldest token reached `holdMsMax`;
 * - `size`: one more token would have exceeded `chunkBytesMax`, or a single token does;
 * - `boundary`: a non-text event follows;
 * - `close`: the lane ends.
 */
export const FLUSH_REASONS = [
  'each',
  'first',
  'producer',
  'ready',
  'quiet',
  'delay',
  'age',
  'size',
  'boundary',
  'close',
] as const;
export type FlushReason = (typeof FLUSH_REASONS)[number];

export type Chunk = {
  lane: string;
  text: string;
  /** Number of tokens that end in this chunk, including empty ones. Over all chunks of a lane they add up to the tokens offered. */
  count: number;
  /**
   * Set if the chunk ends inside a token, the next one after those in `count`: how many UTF-16 units of that token (1 or more) this chunk
   * and earlier ones contain. The rest follows in the lane's next chunk. This happens when a token exceeds `chunkBytesMax`, and when a
   * forced flush meets half a surrogate pair.
   */
  lastOffset?: number;
  reason: FlushReason;
  /** Milliseconds for which the oldest token was held. */
  heldMs: number;
  /** `atMs` of the oldest and the newest token with text in this chunk. */
  firstAtMs: number;
  lastAtMs: number;
};
