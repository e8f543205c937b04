import { type CoalesceSettings, TextHold } from '@hopline/coalesce';

/**
 * Held text of a process leaves at most this often, milliseconds, and then all text that is due leaves together. Each process on the way then wakes up
 * once for many records: at 100 streams of 20 tokens/s wake-ups are half of the cost of a token.
 */
export const GATHER_MS = 10;
/** An append that takes longer than this, milliseconds, shows that processors fill up: an event costs more then. */
export const IDLE_APPEND_MS = 2;
/** An event costs at most this many times the cost of the settings. */
export const EVENT_COST_FACTOR_MAX = 8;
/** A step of the estimated median. So it doubles or halves within 15 appends. */
const MEDIAN_STEP = 1.05;

/**
 * How the writers of one process hold text: each by a `TextHold` of its own, all with the same event cost, which grows with the time that an append
 * takes. That time contains the queues of this process, of NATS and of its disk, so chunks grow before the age of a token does.
 */
export class TextPace {
  readonly #coalesce: CoalesceSettings;
  /** Estimated median of the newest appends. */
  #appendMs = IDLE_APPEND_MS;
  #leftMs = Number.NEGATIVE_INFINITY;
  #due: (() => void)[] = [];

  constructor(coalesce: CoalesceSettings) {
    this.#coalesce = coalesce;
  }

  /** Undefined where every token is an event of its own (`eventCostMs` 0). */
  createHold(): TextHold | undefined {
    return this.#coalesce.eventCostMs === 0 ? undefined : new TextHold(this.#coalesce);
  }

  /** Cost of an event now, in token-milliseconds. */
  get eventCostMs(): number {
    const factor = Math.min(EVENT_COST_FACTOR_MAX, Math.max(1, this.#appendMs / IDLE_APPEND_MS));
    return this.#coalesce.eventCostMs * factor;
  }

  /** An append took `ms`. */
  appended(ms: number): void {
    const next = ms > this.#appendMs ? this.#appendMs * MEDIAN_STEP : this.#appendMs / MEDIAN_STEP;
    this.#appendMs = Math.min(EVENT_COST_FACTOR_MAX * IDLE_APPEND_MS, Math.max(IDLE_APPEND_MS / 2, next));
  }

  /** Calls `leave` at once, or when the text of all writers leaves next. `nowMs`: of `performance.now()`. */
  gather(leave: () => void, nowMs: number): void {
    if (this.#due.length > 0) {
      this.#due.push(leave);
      return;
    }
    const waitMs = this.#leftMs + GATHER_MS - nowMs;
    if (waitMs <= 0) {
      this.#leftMs = nowMs;
      leave();
      return;
    }
    this.#due.push(leave);
    setTimeout(() => {
      this.#leftMs = performance.now();
      for (const one of this.#due.splice(0)) one();
    }, waitMs);
  }
}
