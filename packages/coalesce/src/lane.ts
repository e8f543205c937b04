import type { Chunk, FlushReason, Token } from './chunk.ts';
import { HoldPolicy } from './hold-policy.ts';
import type { CoalesceSettings } from './settings.ts';
import { endsInHalf, utf8Bytes } from './text-cut.ts';

/** A token's place: whose it is, when it came, and its rank among all tokens of the coalescer. */
type Place<R> = { ref: R; atMs: number; arrivedMs: number; rank: number };

/** What is held of a lane: text, and the tokens it came from as a first and a last one only, so a token leaves no object behind. */
type Held<R> = {
  text: string;
  /** UTF-8 bytes of `text`, 2 too high for each pair that came in two tokens. */
  bytes: number;
  count: number;
  first: Place<R>;
  last: Place<R>;
  /** The newest token that has text: the only one a cut can fall into. Its length in UTF-16 units, and the tokens from it to the last. */
  tail: Place<R>;
  tailUnits: number;
  tailCount: number;
  /** The token before `tail`: the last one that is whole if the cut falls right before `tail`. */
  beforeTail: Place<R> | undefined;
};

export type Lane<R> = {
  readonly key: string;
  readonly policy: HoldPolicy;
  held: Held<R> | undefined;
  /** Nothing leaves on time before this: the text ends open. Infinity: half a pair alone, which only more text or the lane's end moves. */
  notBeforeMs: number;
};

export function createLane<R>(key: string, settings: CoalesceSettings): Lane<R> {
  return {
    key,
    policy: new HoldPolicy(settings.eventCostMs, settings.holdMsMax),
    held: undefined,
    notBeforeMs: Number.NEGATIVE_INFINITY,
  };
}

export function append<R>(lane: Lane<R>, token: Token<R>, bytes: number, nowMs: number, rank: number): void {
  const place = { ref: token.ref, atMs: token.atMs, arrivedMs: nowMs, rank };
  const units = token.text.length;
  const held = lane.held;
  lane.notBeforeMs = Number.NEGATIVE_INFINITY;
  if (held === undefined) {
    const tail = { tail: place, tailUnits: units, tailCount: 1, beforeTail: undefined };
    lane.held = { text: token.text, bytes, count: 1, first: place, last: place, ...tail };
    return;
  }
  if (units > 0 || held.text.length === 0) {
    held.beforeTail = held.last;
    held.tail = place;
    held.tailUnits = units;
    held.tailCount = 0;
  }
  held.text += token.text;
  held.bytes += bytes;
  held.last = place;
  held.count++;
  held.tailCount++;
}

/** End of the held text that may leave while the lane goes on: half a pair at the end stays. */
export function sendableEnd<R>(lane: Lane<R>): number {
  const text = lane.held?.text ?? '';
  return endsInHalf(text) ? text.length - 1 : text.length;
}

/** Takes the held text up to `end`. A rest (`end` before the end of the text) belongs to the newest token with text and stays held. */
export function take<R>(lane: Lane<R>, end: number, reason: FlushReason, nowMs: number): Chunk<R> | undefined {
  const held = lane.held;
  if (held === undefined || (end === 0 && held.text.length > 0)) return undefined;
  const heldMs = nowMs - held.first.arrivedMs;
  const base = { lane: lane.key, first: held.first.ref, reason, heldMs, firstAtMs: held.first.atMs };
  if (end === held.text.length) {
    lane.held = undefined;
    return { ...base, text: held.text, last: held.last.ref, count: held.count, lastAtMs: held.last.atMs };
  }
  const { tail, tailUnits, tailCount, beforeTail } = held;
  const text = held.text.slice(0, end);
  const rest = held.text.slice(end);
  const count = held.count - tailCount;
  // Subtracting keeps a large token linear in its length; the part that left is counted exactly, so the rest is never counted too low.
  lane.held = { ...held, text: rest, bytes: held.bytes - utf8Bytes(text), count: tailCount, first: tail };
  if (rest.length === tailUnits && beforeTail !== undefined) {
    return { ...base, text, last: beforeTail.ref, count, lastAtMs: beforeTail.atMs };
  }
  return { ...base, text, last: tail.ref, count, lastAtMs: tail.atMs, lastOffset: tailUnits - rest.length };
}
