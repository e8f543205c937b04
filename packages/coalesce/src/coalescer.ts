import type { Chunk, FlushReason, Token } from './chunk.ts';
import { append, createLane, type Lane, sendableEnd, take } from './lane.ts';
import { type CoalesceSettings, checkSettings, DEFAULT_SETTINGS, LANES_MAX } from './settings.ts';
import { endsInHalf, endsOpen, pieceEnd, utf8Bytes } from './text-cut.ts';

/**
 * The coalescer of one task: trades a bounded, chosen delay for fewer events. It has no clock and no timer: every call is told the time, and the same
 * calls with the same times give the same chunks. It is changed in place, so that a token costs no garbage but its own place.
 *
 * How to drive it: `offer` every token that is there, then `tick` once; append what both return; set one timer to `wakeAtMs` and `tick` again when it
 * fires. Tokens offered at one `nowMs` are one arrival. Ticking late (an append is in flight) is fine: chunks grow by what came meanwhile.
 */
export type Coalescer<R> = {
  readonly settings: Readonly<CoalesceSettings>;
  /** Every lane known, in the order they were opened. At most LANES_MAX. */
  readonly lanes: Map<string, Lane<R>>;
  /** The lanes that hold something. */
  readonly holding: Set<Lane<R>>;
  /** Tokens offered so far: the rank of the next. */
  offered: number;
  /** The latest time seen: a clock that steps back is held at it. */
  nowMs: number;
};

/** Throws RangeError for settings out of bounds. */
export function createCoalescer<R>(settings: Partial<CoalesceSettings> = {}): Coalescer<R> {
  const complete = Object.freeze({ ...DEFAULT_SETTINGS, ...settings });
  checkSettings(complete);
  return { settings: complete, lanes: new Map(), holding: new Set(), offered: 0, nowMs: Number.NEGATIVE_INFINITY };
}

/**
 * Takes one token of a lane. Returns what cannot wait for `tick`: every token in pass-through, and chunks cut by size. A token over `chunkBytesMax`
 * leaves at once, in pieces.
 */
export function offer<R>(coalescer: Coalescer<R>, key: string, token: Token<R>, nowMs: number): Chunk<R>[] {
  const { eventCostMs, chunkBytesMax, holdMsMax } = coalescer.settings;
  const now = advance(coalescer, nowMs);
  const chunks: Chunk<R>[] = [];
  const lane = coalescer.lanes.get(key) ?? openLane(coalescer, key, now, chunks);
  const bytes = utf8Bytes(token.text);
  if (lane.held !== undefined && lane.held.bytes + bytes > chunkBytesMax)
    send(coalescer, lane, sendableEnd(lane), 'size', now, chunks);
  append(lane, token, bytes, now, coalescer.offered++);
  coalescer.holding.add(lane);
  if (eventCostMs > 0) lane.policy.arrive(now);
  else lane.notBeforeMs = lane.held!.first.arrivedMs + holdMsMax;
  if (lane.held!.bytes > chunkBytesMax) sendPieces(coalescer, lane, now, chunks);
  else if (eventCostMs === 0 && !endsInHalf(lane.held!.text)) send(coalescer, lane, lane.held!.text.length, 'each', now, chunks);
  return chunks;
}

/** Chunks that are due, in the order of each lane's oldest token. */
export function tick<R>(coalescer: Coalescer<R>, nowMs: number): Chunk<R>[] {
  const now = advance(coalescer, nowMs);
  const chunks: Chunk<R>[] = [];
  for (const lane of byOldest(coalescer)) {
    if (dueMs(coalescer, lane) > now) continue;
    const ageMs = lane.held!.first.arrivedMs + coalescer.settings.holdMsMax;
    if (now < ageMs && endsOpen(lane.held!.text)) lane.notBeforeMs = ageMs;
    else send(coalescer, lane, sendableEnd(lane), Number.isFinite(lane.notBeforeMs) ? 'age' : lane.policy.why, now, chunks);
  }
  return chunks;
}

/**
 * Sends what all lanes hold, in the order of each lane's oldest token: call it before a non-text event. Half a surrogate pair at the end of a lane
 * stays held, because its other half may follow the event and half a pair does not survive UTF-8.
 */
export function flush<R>(coalescer: Coalescer<R>, nowMs: number, reason: FlushReason = 'boundary'): Chunk<R>[] {
  const now = advance(coalescer, nowMs);
  const chunks: Chunk<R>[] = [];
  for (const lane of byOldest(coalescer)) send(coalescer, lane, sendableEnd(lane), reason, now, chunks);
  return chunks;
}

/** Ends one lane: everything it holds, an unpaired half too, unchanged. What it has learned is forgotten. Returns no chunk if it holds nothing. */
export function close<R>(coalescer: Coalescer<R>, key: string, nowMs: number): Chunk<R>[] {
  const now = advance(coalescer, nowMs);
  const chunks: Chunk<R>[] = [];
  const lane = coalescer.lanes.get(key);
  if (lane !== undefined) closeLane(coalescer, lane, 'close', now, chunks);
  return chunks;
}

/** Ends all lanes, in the order of each lane's oldest token: the task is over. */
export function closeAll<R>(coalescer: Coalescer<R>, nowMs: number): Chunk<R>[] {
  const now = advance(coalescer, nowMs);
  const chunks: Chunk<R>[] = [];
  for (const lane of byOldest(coalescer)) closeLane(coalescer, lane, 'close', now, chunks);
  coalescer.lanes.clear();
  return chunks;
}

/**
 * When `tick` must be called at the latest, on the clock of `nowMs`; may lie in the past ("as soon as all waiting tokens are offered"). Undefined when
 * nothing is held, or nothing but unpaired halves, which no time releases.
 */
export function wakeAtMs<R>(coalescer: Coalescer<R>): number | undefined {
  let wakeMs = Number.POSITIVE_INFINITY;
  for (const lane of coalescer.holding) wakeMs = Math.min(wakeMs, dueMs(coalescer, lane));
  return wakeMs === Number.POSITIVE_INFINITY ? undefined : wakeMs;
}

/** How much is held now, and the oldest token that is not fully out: everything offered before it is. */
export function held<R>(coalescer: Coalescer<R>): { tokens: number; bytes: number; lanes: number; oldest: R | undefined } {
  let tokens = 0;
  let bytes = 0;
  for (const lane of coalescer.holding) {
    tokens += lane.held!.count;
    bytes += lane.held!.bytes;
  }
  return { tokens, bytes, lanes: coalescer.holding.size, oldest: byOldest(coalescer)[0]?.held?.first.ref };
}

/** Reasons that bind every rule alike, the greedy one too. */
const FORCED: ReadonlySet<FlushReason> = new Set(['size', 'boundary', 'close']);

function advance<R>(coalescer: Coalescer<R>, nowMs: number): number {
  if (nowMs > coalescer.nowMs) coalescer.nowMs = nowMs;
  return coalescer.nowMs;
}

function dueMs<R>(coalescer: Coalescer<R>, lane: Lane<R>): number {
  if (coalescer.settings.eventCostMs === 0) return lane.notBeforeMs;
  lane.policy.decide();
  return Math.max(lane.policy.dueMs, lane.notBeforeMs);
}

function byOldest<R>(coalescer: Coalescer<R>): Lane<R>[] {
  const lanes = [...coalescer.holding];
  return lanes.length < 2 ? lanes : lanes.sort((a, b) => a.held!.first.rank - b.held!.first.rank);
}

function send<R>(
  coalescer: Coalescer<R>,
  lane: Lane<R>,
  end: number,
  reason: FlushReason,
  now: number,
  chunks: Chunk<R>[],
): void {
  const chunk = take(lane, end, reason, now);
  if (lane.held === undefined) coalescer.holding.delete(lane);
  else lane.notBeforeMs = Number.POSITIVE_INFINITY;
  if (chunk === undefined) return;
  chunks.push(chunk);
  if (coalescer.settings.eventCostMs > 0) lane.policy.left(now, FORCED.has(reason));
}

function sendPieces<R>(coalescer: Coalescer<R>, lane: Lane<R>, now: number, chunks: Chunk<R>[]): void {
  while (lane.held !== undefined && sendableEnd(lane) > 0) {
    const end = Math.min(sendableEnd(lane), pieceEnd(lane.held.text, 0, coalescer.settings.chunkBytesMax));
    send(coalescer, lane, end, 'size', now, chunks);
  }
}

function closeLane<R>(coalescer: Coalescer<R>, lane: Lane<R>, reason: FlushReason, now: number, chunks: Chunk<R>[]): void {
  if (lane.held !== undefined) send(coalescer, lane, lane.held.text.length, reason, now, chunks);
  coalescer.lanes.delete(lane.key);
}

function openLane<R>(coalescer: Coalescer<R>, key: string, now: number, chunks: Chunk<R>[]): Lane<R> {
  if (coalescer.lanes.size >= LANES_MAX) {
    const given = idleLane(coalescer) ?? byOldest(coalescer)[0];
    if (given !== undefined) closeLane(coalescer, given, 'size', now, chunks);
  }
  const lane = createLane<R>(key, coalescer.settings);
  coalescer.lanes.set(key, lane);
  return lane;
}

function idleLane<R>(coalescer: Coalescer<R>): Lane<R> | undefined {
  for (const lane of coalescer.lanes.values()) if (lane.held === undefined) return lane;
  return undefined;
}
