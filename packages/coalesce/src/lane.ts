import type { Chunk, FlushReason, Token } from './chunk.ts';
import { HoldPolicy } from './hold-policy.ts';
import type { CoalesceSettings } from './settings.ts';
import { endsInHalf, utf8Bytes } from './text-cut.ts';

/** Position of a token: its times, and its rank among all tokens of the coalescer. */
type Position = { atMs: number; arrivedMs: number; rank: number };

/**
 * Held text of a lane. Only the positions of its first and last tokens are kept, so that memory does not grow with the tokens
 * held.
 */
type Held = {
  text: string;
  /** UTF-8 bytes of `text`. The count is 2 too high for each pair that was split over two tokens. */
  bytes: number;
  count: number;
  first: Position;
  last: Position;
  /**
   * The newest token with text (the first token if none has text), which is the only one that a cut can split; its length in UTF-16 units, and the
   * number of tokens from it to the last one.
   */
  tail: Position;
  tailUnits: number;
  tailCount: number;
  /** The token before `tail`, which is the last whole token if the cut is right before `tail`. */
  beforeTail: Position | undefined;
};

export type Lane = {
  readonly key: string;
  readonly policy: HoldPolicy;
  held: Held | undefined;
  /**
   * No timer releases the text before this, because its end is open: only half a pair is held, or a cluster may continue.
   */
  notBeforeMs: number;
  /** The source has held the newest token by the rule: no policy holds it again. */
  isReleased: boolean;
};

export function createLane(key: string, settings: CoalesceSettings): Lane {
  return {
    key,
    policy: new HoldPolicy(settings.eventCostMs, settings.holdMsMax),
    held: undefined,
    notBeforeMs: Number.NEGATIVE_INFINITY,
    isReleased: false,
  };
}

export function append(lane: Lane, token: Token, bytes: number, nowMs: number, rank: number): void {
  const position = { atMs: token.atMs, arrivedMs: nowMs, rank };
  const units = token.text.length;
  const held = lane.held;
  lane.notBeforeMs = Number.NEGATIVE_INFINITY;
  if (held === undefined) {
    const tail = { tail: position, tailUnits: units, tailCount: 1, beforeTail: undefined };
    lane.held = { text: token.text, bytes, count: 1, first: position, last: position, ...tail };
    return;
  }
  if (units > 0) {
    held.beforeTail = held.last;
    held.tail = position;
    held.tailUnits = units;
    held.tailCount = 0;
  }
  held.text += token.text;
  held.bytes += bytes;
  held.last = position;
  held.count++;
  held.tailCount++;
}

/** End of the text that may be sent while the lane is open. Half a pair at the end stays held. */
export function sendableEnd(lane: Lane): number {
  const text = lane.held?.text ?? '';
  return endsInHalf(text) ? text.length - 1 : text.length;
}

/** Takes the held text up to `end`. Text after `end` belongs to the newest token with text and stays held. */
export function take(lane: Lane, end: number, reason: FlushReason, nowMs: number): Chunk | undefined {
  const held = lane.held;
  if (held === undefined || (end === 0 && held.text.length > 0)) return undefined;
  const heldMs = nowMs - held.first.arrivedMs;
  const base = { lane: lane.key, reason, heldMs, firstAtMs: held.first.atMs };
  if (end === held.text.length) {
    lane.held = undefined;
    return { ...base, text: held.text, count: held.count, lastAtMs: held.last.atMs };
  }
  const { tail, tailUnits, tailCount, beforeTail } = held;
  const text = held.text.slice(0, end);
  const rest = held.text.slice(end);
  const count = held.count - tailCount;
  // Subtraction keeps the work for a large token linear in its length. The part that left is counted exactly, so the count of the rest is
  // never too low.
  lane.held = { ...held, text: rest, bytes: held.bytes - utf8Bytes(text), count: tailCount, first: tail };
  if (rest.length === tailUnits && beforeTail !== undefined) {
    return { ...base, text, count, lastAtMs: beforeTail.atMs };
  }
  return { ...base, text, count, lastAtMs: tail.atMs, lastOffset: tailUnits - rest.length };
}
