import { HoldPolicy } from './hold-policy.ts';
import { COALESCED_LANES_MAX, type CoalesceSettings, completeSettings } from './settings.ts';
import { CLUSTER_LOOKBACK_UNITS, endsOpen, utf8Bytes } from './text-cut.ts';

type HeldLane = {
  readonly policy: HoldPolicy;
  /** When the oldest held text arrived; undefined while nothing is held. */
  sinceMs: number | undefined;
  /** Upper bound of the UTF-8 bytes held: `utf8Bytes` counts a split pair as 2 too many. */
  bytes: number;
  /** The end of the held text: as much of it as is needed to see whether the next token continues it. */
  tail: string;
};

/**
 * Decides when a producer sends the text that it has, by the rule of the coalescer and within the same settings. The text itself stays with
 * the caller, who always sends all lanes together: one more event costs as much as K ms of delay, but a lane that joins the record of
 * another lane costs nothing. Like the coalescer, it has no clock and no timer.
 *
 * Usage: `arrive` for the tokens of one step, then wait until `dueMs`, send, and call `left`.
 */
export class TextHold {
  readonly #settings: Readonly<CoalesceSettings>;
  readonly #lanes = new Map<string, HeldLane>();
  #eventCostMs: number;
  #sinceMs: number | undefined;
  #nowMs = Number.NEGATIVE_INFINITY;

  /** Throws RangeError for settings that are out of bounds, and for pass-through (`eventCostMs` 0), which holds no text. */
  constructor(settings: Partial<CoalesceSettings> = {}) {
    this.#settings = completeSettings(settings);
    if (this.#settings.eventCostMs === 0) throw new RangeError('eventCostMs must not be 0: pass-through holds no text');
    this.#eventCostMs = this.#settings.eventCostMs;
  }

  /** Sets the cost of an event, which must be greater than 0, for text that arrives from now on. It replaces the cost in the settings. */
  setEventCost(ms: number): void {
    this.#eventCostMs = ms;
  }

  /** When the oldest held text arrived; undefined while nothing is held. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /** `tokens` tokens of a lane arrived together; `text` joins them. */
  arrive(key: string, text: string, tokens: number, nowMs: number): void {
    const now = this.#advance(nowMs);
    const lane = this.#lanes.get(key) ?? this.#open(key);
    lane.policy.setEventCost(this.#eventCostMs);
    lane.policy.arrive(now, tokens);
    lane.sinceMs ??= now;
    this.#sinceMs ??= now;
    lane.bytes += utf8Bytes(text);
    lane.tail = (lane.tail + text).slice(-CLUSTER_LOOKBACK_UNITS);
  }

  /** When the held text must be sent, on the clock of `nowMs`; this may lie in the past. Infinity while nothing is held. */
  get dueMs(): number {
    let due = Number.POSITIVE_INFINITY;
    for (const lane of this.#lanes.values()) if (lane.sinceMs !== undefined) due = Math.min(due, this.#laneDueMs(lane));
    return due;
  }

  /** Whether a lane's first text is held: a reader is waiting for it. */
  get holdsFirst(): boolean {
    for (const { sinceMs, policy, tail } of this.#lanes.values()) {
      if (sinceMs === undefined || endsOpen(tail)) continue;
      policy.decide();
      if (policy.why === 'first') return true;
    }
    return false;
  }

  /** All held text was sent at `nowMs`. */
  left(nowMs: number): void {
    const now = this.#advance(nowMs);
    for (const [key, lane] of this.#lanes) {
      if (lane.sinceMs === undefined) {
        if (this.#lanes.size > COALESCED_LANES_MAX) this.#lanes.delete(key);
        continue;
      }
      lane.policy.decide();
      lane.policy.left(now, lane.policy.dueMs > now);
      lane.sinceMs = undefined;
      lane.bytes = 0;
      lane.tail = '';
    }
    this.#sinceMs = undefined;
  }

  /** Ends the lane and drops its pace. Text that it holds must still be sent. */
  close(key: string): void {
    this.#lanes.delete(key);
  }

  #laneDueMs({ policy, sinceMs, bytes, tail }: HeldLane): number {
    if (bytes >= this.#settings.chunkBytesMax) return sinceMs!;
    policy.decide();
    return endsOpen(tail) ? sinceMs! + this.#settings.holdMsMax : policy.dueMs;
  }

  #open(key: string): HeldLane {
    const lane = { policy: new HoldPolicy(this.#eventCostMs, this.#settings.holdMsMax), sinceMs: undefined, bytes: 0, tail: '' };
    this.#lanes.set(key, lane);
    return lane;
  }

  #advance(nowMs: number): number {
    if (nowMs > this.#nowMs) this.#nowMs = nowMs;
    return this.#nowMs;
  }
}
