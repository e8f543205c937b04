/** How one task's text is coalesced. Checked by `checkSettings`; every number is finite. */
export type CoalesceSettings = {
  /**
   * K, in token-milliseconds: one event costs as much as delaying one token by K ms, or ten tokens by K/10 ms each.
   * 0 is pass-through: one chunk per token. At most `EVENT_COST_MS_MAX`.
   */
  eventCostMs: number;
  /** Longest time that a token is held, in milliseconds, from 1 to `HOLD_MS_MAX`. */
  holdMsMax: number;
  /** No chunk is longer than this, in UTF-8 bytes of its text before JSON escaping. An integer, `CHUNK_BYTES_MIN` or more. */
  chunkBytesMax: number;
};

/** A value above a minute is almost certainly in the wrong unit. */
export const EVENT_COST_MS_MAX = 60_000;
export const HOLD_MS_MAX = 60_000;
/** Large enough for any single code point, so that a cut is always possible. */
export const CHUNK_BYTES_MIN = 4;

/**
 * Half a surrogate pair waits this long for its other half. Then it is sent unpaired, because held text holds back the checkpoint. The time
 * is longer than a source waits for a stalled log (20 s), so that a pair is split only if its source is gone.
 */
export const HALF_PAIR_HOLD_MS = 30_000;

/**
 * Maximum number of lanes of one coalescer. A further lane evicts an idle lane with its model or, if none is idle, the lane with the oldest
 * text, which is then sent.
 */
export const COALESCED_LANES_MAX = 256;

/**
 * With an event cost of 110, a chunk has 10 tokens at 500 tokens/s (10 ms mean delay), 3 at 50 tokens/s (20 ms) and 2 at 15 tokens/s, and a
 * provider's packet leaves at its end. 250 ms is the longest window that products in this field use, and the point where a reader sees a
 * stall. 32 KiB stays below NATS' default payload of 1 MiB even if every byte needs a six-byte JSON escape.
 */
export const DEFAULT_SETTINGS: Readonly<CoalesceSettings> = Object.freeze({
  eventCostMs: 110,
  holdMsMax: 250,
  chunkBytesMax: 32_768,
});

/** The settings, with defaults for absent members. Throws like `checkSettings`. */
export function completeSettings(settings: Partial<CoalesceSettings>): Readonly<CoalesceSettings> {
  const complete = Object.freeze({ ...DEFAULT_SETTINGS, ...settings });
  checkSettings(complete);
  return complete;
}

/** Throws RangeError with the name of the setting that is out of bounds. */
export function checkSettings(settings: CoalesceSettings): void {
  within('eventCostMs', settings.eventCostMs, 0, EVENT_COST_MS_MAX);
  within('holdMsMax', settings.holdMsMax, 1, HOLD_MS_MAX);
  within('chunkBytesMax', settings.chunkBytesMax, CHUNK_BYTES_MIN, Number.MAX_SAFE_INTEGER);
  if (!Number.isInteger(settings.chunkBytesMax)) throw new RangeError('chunkBytesMax must be an integer');
}

function within(name: string, value: number, min: number, max: number): void {
  if (!(value >= min && value <= max)) throw new RangeError(`${name} must be from ${min} to ${max}`);
}
