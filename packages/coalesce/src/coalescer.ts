import type { Chunk, FlushReason, Token } from './chunk.ts';
import { HoldPolicy } from './hold-policy.ts';
import { COALESCED_LANES_MAX, type CoalesceSettings, completeSettings, HALF_PAIR_HOLD_MS } from './settings.ts';
import { endsInHalf, endsOpen, pieceEnd, utf8Bytes } from './text-cut.ts';

/**
 * The coalescer of one task: trades a bounded, chosen delay for fewer events. It has no clock and no timer: time is an argument
 * of every call, and the same calls with the same times give the same chunks. It is changed in place, so that a token allocates only its position.
 *
 * Usage: `offer` every available token, then `tick` once; append what both return; set one timer to `wakeAtMs` and `tick` again
 * when it fires. Tokens offered at one `nowMs` are one arrival. A late `tick` (an append is in flight) is safe: chunks grow by
 * the tokens offered in the meantime.
 */
export type Coalescer = {
  readonly settings: Readonly<CoalesceSettings>;
  /** All lanes, in the order they were opened. At most COALESCED_LANES_MAX. */
  readonly lanes: Map<string, Lane>;
  /** The lanes that hold text. */
  readonly holding: Set<Lane>;
  /** Tokens offered so far, which is the rank of the next one. */
  offered: number;
  /** The latest time that was passed in. It is used instead of any earlier time that follows. */
  nowMs: number;
};

/** Throws RangeError for settings that are out of bounds. */
export function createCoalescer(settings: Partial<CoalesceSettings> = {}): Coalescer {
  return {
    settings: completeSettings(settings),
    lanes: new Map(),
    holding: new Set(),
    offered: 0,
    nowMs: Number.NEGATIVE_INFINITY,
  };
}

/**
 * Takes one token of a lane. Returns the chunks that cannot wait for `tick`: every token in pass-through, and chunks that have reached
 * their size. A token larger than `chunkBytesMax` is sent at once, in pieces. `isHeld`: the source has already held the token by this rule
 * (`TextHold`), so it is sent with the next `tick`, unless its end is open.
 */
export function offer(coalescer: Coalescer, key: string, token: Token, nowMs: number, isHeld = false): Chunk[] {
  const { eventCostMs, chunkBytesMax, holdMsMax } = coalescer.settings;
  const now = advance(coalescer, nowMs);
  const chunks: Chunk[] = [];
  const lane = coalescer.lanes.get(key) ?? openLane(coalescer, key, now, chunks);
  const bytes = utf8Bytes(token.text);
  if (lane.held !== undefined && lane.held.bytes + bytes > chunkBytesMax)
    send(coalescer, lane, sendableEnd(lane), 'size', now, chunks);
  append(lane, token, bytes, now, coalescer.offered++);
  coalescer.holding.add(lane);
  if (eventCostMs > 0 && isHeld) lane.isReleased = true;
  else if (eventCostMs > 0) lane.policy.arrive(now);
  else lane.notBeforeMs = lane.held!.first.arrivedMs + holdMsMax;
  if (lane.held!.bytes > chunkBytesMax) sendPieces(coalescer, lane, now, chunks);
  else if (eventCostMs === 0 && !endsInHalf(lane.held!.text)) send(coalescer, lane, lane.held!.text.length, 'each', now, chunks);
  return chunks;
}

/** Chunks that are due, in the order of each lane's oldest token. */
export function tick(coalescer: Coalescer, nowMs: number): Chunk[] {
  const now = advance(coalescer, nowMs);
  const chunks: Chunk[] = [];
  for (const lane of byOldest(coalescer)) {
    if (dueMs(coalescer, lane) > now) continue;
    const { first, text } = lane.held!;
    const ageMs = first.arrivedMs + coalescer.settings.holdMsMax;
    if (isHalfLeft(lane) && now >= first.arrivedMs + HALF_PAIR_HOLD_MS) send(coalescer, lane, text.length, 'age', now, chunks);
    else if (now < ageMs && endsOpen(text)) lane.notBeforeMs = ageMs;
    else send(coalescer, lane, sendableEnd(lane), whyDue(lane), now, chunks);
  }
  return chunks;
}

/**
 * Sends the held text of all lanes, in the order of each lane's oldest token. Call it before a non-text event. Half a surrogate pair at the
 * end of a lane stays held for HALF_PAIR_HOLD_MS, because its other half may follow the event, and half a pair does not survive UTF-8.
 */
export function flush(coalescer: Coalescer, nowMs: number): Chunk[] {
  const now = advance(coalescer, nowMs);
  const chunks: Chunk[] = [];
  for (const lane of byOldest(coalescer)) send(coalescer, lane, sendableEnd(lane), 'boundary', now, chunks);
  return chunks;
}

/** Ends one lane and returns all its held text, including unpaired halves. Its model is dropped. Returns no chunk if nothing is held. */
export function close(coalescer: Coalescer, key: string, nowMs: number): Chunk[] {
  const now = advance(coalescer, nowMs);
  const chunks: Chunk[] = [];
  const lane = coalescer.lanes.get(key);
  if (lane !== undefined) closeLane(coalescer, lane, 'close', now, chunks);
  return chunks;
}

/** Ends all lanes at the end of the task, in the order of each lane's oldest token. */
export function closeAll(coalescer: Coalescer, nowMs: number): Chunk[] {
  const now = advance(coalescer, nowMs);
  const chunks: Chunk[] = [];
  for (const lane of byOldest(coalescer)) closeLane(coalescer, lane, 'close', now, chunks);
  coalescer.lanes.clear();
  return chunks;
}

/**
 * The latest time for the next `tick`, on the clock of `nowMs`. May lie in the past; then call `tick` as soon as all waiting tokens have
 * been offered. Undefined if nothing is held.
 */
export function wakeAtMs(coalescer: Coalescer): number | undefined {
  let wakeMs = Number.POSITIVE_INFINITY;
  for (const lane of coalescer.holding) wakeMs = Math.min(wakeMs, dueMs(coalescer, lane));
  return wakeMs === Number.POSITIVE_INFINITY ? undefined : wakeMs;
}

/** Reasons that end a chunk under every policy, including the greedy one. */
const FORCED: ReadonlySet<FlushReason> = new Set(['size', 'boundary', 'close']);

function advance(coalescer: Coalescer, nowMs: number): number {
  if (nowMs > coalescer.nowMs) coalescer.nowMs = nowMs;
  return coalescer.nowMs;
}

function dueMs(coalescer: Coalescer, lane: Lane): number {
  // The policy has nothing to release while only half a pair is held.
  if (coalescer.settings.eventCostMs === 0 || lane.isReleased || isHalfLeft(lane)) return lane.notBeforeMs;
  lane.policy.decide();
  return Math.max(lane.policy.dueMs, lane.notBeforeMs);
}

function whyDue({ notBeforeMs, isReleased, policy }: Lane): FlushReason {
  if (Number.isFinite(notBeforeMs)) return 'age';
  return isReleased ? 'producer' : policy.why;
}

function isHalfLeft(lane: Lane): boolean {
  return lane.notBeforeMs > Number.NEGATIVE_INFINITY && lane.held?.text.length === 1 && sendableEnd(lane) === 0;
}

function byOldest(coalescer: Coalescer): Lane[] {
  const lanes = [...coalescer.holding];
  return lanes.length < 2 ? lanes : lanes.sort((a, b) => a.held!.first.rank - b.held!.first.rank);
}

function send(coalescer: Coalescer, lane: Lane, end: number, reason: FlushReason, now: number, chunks: Chunk[]): void {
  const chunk = take(lane, end, reason, now);
  if (chunk !== undefined) lane.isReleased = false;
  if (lane.held === undefined) coalescer.holding.delete(lane);
  else lane.notBeforeMs = lane.held.first.arrivedMs + HALF_PAIR_HOLD_MS;
  if (chunk === undefined) return;
  chunks.push(chunk);
  if (coalescer.settings.eventCostMs > 0) lane.policy.left(now, FORCED.has(reason));
}

function sendPieces(coalescer: Coalescer, lane: Lane, now: number, chunks: Chunk[]): void {
  while (lane.held !== undefined && sendableEnd(lane) > 0) {
    const end = Math.min(sendableEnd(lane), pieceEnd(lane.held.text, 0, coalescer.settings.chunkBytesMax));
    send(coalescer, lane, end, 'size', now, chunks);
  }
}

function closeLane(coalescer: Coalescer, lane: Lane, reason: FlushReason, now: number, chunks: Chunk[]): void {
  if (lane.held !== undefined) send(coalescer, lane, lane.held.text.length, reason, now, chunks);
  coalescer.lanes.delete(lane.key);
}

function openLane(coalescer: Coalescer, key: string, now: number, chunks: Chunk[]): Lane {
  if (coalescer.lanes.size >= COALESCED_LANES_MAX) {
    const evicted = idleLane(coalescer) ?? byOldest(coalescer)[0];
    if (evicted !== undefined) closeLane(coalescer, evicted, 'size', now, chunks);
  }
  const lane = createLane(key, coalescer.settings);
  coalescer.lanes.set(key, lane);
  return lane;
}

function idleLane(coalescer: Coalescer): Lane | undefined {
  for (const lane of coalescer.lanes.values()) if (lane.held === undefined) return lane;
  return undefined;
}

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
   * The newest token with text, or the first token if none has text. It is the only token that a cut can split. `tailUnits`: its length.
   * `tailCount`: number of tokens from it to the last one.
   */
  tail: Position;
  tailUnits: number;
  tailCount: number;
  /** The token before `tail`, which is the last whole token if the cut is right before `tail`. */
  beforeTail: Position | undefined;
};

type Lane = {
  readonly key: string;
  readonly policy: HoldPolicy;
  held: Held | undefined;
  /** No timer releases the text before this time, because its end is open: either only half a pair is held, or a cluster may continue. */
  notBeforeMs: number;
  /** The source has held the newest token by the rule, so no policy holds it again. */
  isReleased: boolean;
};

function createLane(key: string, settings: CoalesceSettings): Lane {
  return {
    key,
    policy: new HoldPolicy(settings.eventCostMs, settings.holdMsMax),
    held: undefined,
    notBeforeMs: Number.NEGATIVE_INFINITY,
    isReleased: false,
  };
}

function append(lane: Lane, token: Token, bytes: number, nowMs: number, rank: number): void {
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
function sendableEnd(lane: Lane): number {
  const text = lane.held?.text ?? '';
  return endsInHalf(text) ? text.length - 1 : text.length;
}

/** Takes the held text up to `end`. Text after `end` belongs to the newest token with text and stays held. */
function take(lane: Lane, end: number, reason: FlushReason, nowMs: number): Chunk | undefined {
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
