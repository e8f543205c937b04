import { type CoalesceSettings, TextHold } from '@hopline/coalesce';

/**
 * Held text of a process is sent at most once in this many milliseconds, and then all text that is due is sent together. So each process on
 * the way wakes up once for many records: at 100 streams of 20 tokens/s wake-ups are half of the cost of a token.
 */
export const GATHER_MS = 10;
/**
 * The processors are nearly saturated when the median append takes more than this many times as long as the fastest one. Beyond that, the
 * cost of an event grows. Measured on two cores that were shared with other programs: 2 to 3 times at 1 to 30 streams of 20 tokens/s, 10
 * times and more at 100.
 */
export const SLOW_APPEND_FACTOR = 3;
/** No append counts as faster than this many milliseconds. */
export const FASTEST_APPEND_MS_MIN = 0.5;
/** After this time the fastest append counts as twice as slow, so that the estimate adapts if a server has moved farther away. */
export const FASTEST_APPEND_DOUBLING_MS = 10 * 60_000;
/** An event costs at most this many times the cost of the settings. */
export const EVENT_COST_FACTOR_MAX = 8;
/**
 * Extra cost of an event if all text has to wait for other text, because a process with that many streams saturates the processors. At 20
 * tokens/s a chunk then has three tokens instead of two, at the same median age.
 */
export const CROWDED_COST_SHARE = 0.75;
/** Weight of the newest text in the estimated share of waiting text. */
const CROWDED_STEP = 1 / 32;
/** Factor of one step of the estimated median, which can thus double or halve within 15 appends. */
const MEDIAN_STEP = 1.05;

/**
 * How the writers of one process hold text. Each has its own `TextHold`, and all have the same event cost, which grows with the time that
 * an append takes. That time includes the queues of this process, of NATS and of its disk, so chunks grow before the age of a token does.
 */
export class TextPace {
  readonly #coalesce: CoalesceSettings;
  /** Estimated median of the newest appends. It starts low, because the first appends of a process are slow. */
  #medianMs = FASTEST_APPEND_MS_MIN;
  #fastestMs = Number.POSITIVE_INFINITY;
  #appendedAtMs = 0;
  /** Share of the newest held text that had to wait for other text, 0 to 1. */
  #crowded = 0;
  #leftMs = Number.NEGATIVE_INFINITY;
  #due: (() => void)[] = [];

  constructor(coalesce: CoalesceSettings) {
    this.#coalesce = coalesce;
  }

  /** Undefined if every token is an event of its own (`eventCostMs` 0). */
  createHold(): TextHold | undefined {
    return this.#coalesce.eventCostMs === 0 ? undefined : new TextHold(this.#coalesce);
  }

  /** Current cost of an event, in token-milliseconds. */
  get eventCostMs(): number {
    const factor = this.#medianMs / (SLOW_APPEND_FACTOR * this.#fastestMs);
    const crowdedMs = this.#coalesce.eventCostMs * (1 + CROWDED_COST_SHARE * this.#crowded);
    return crowdedMs * Math.min(EVENT_COST_FACTOR_MAX, Math.max(1, factor));
  }

  /** An append that began at `startedMs` was acknowledged at `nowMs`. */
  appended(startedMs: number, nowMs: number): void {
    const ms = Math.max(FASTEST_APPEND_MS_MIN, nowMs - startedMs);
    this.#fastestMs = Math.min(ms, this.#fastestMs * 2 ** ((nowMs - this.#appendedAtMs) / FASTEST_APPEND_DOUBLING_MS));
    this.#appendedAtMs = nowMs;
    const next = ms > this.#medianMs ? this.#medianMs * MEDIAN_STEP : this.#medianMs / MEDIAN_STEP;
    // Above the largest factor, a higher estimate would only take longer to fall again.
    this.#medianMs = Math.min(
      EVENT_COST_FACTOR_MAX * SLOW_APPEND_FACTOR * this.#fastestMs,
      Math.max(FASTEST_APPEND_MS_MIN, next),
    );
  }

  /** Calls `leave` at once, or when the text of all writers is sent next. `nowMs`: the value of `performance.now()`. */
  gather(leave: () => void, nowMs: number): void {
    const waitMs = this.#leftMs + GATHER_MS - nowMs;
    const waits = this.#due.length > 0 || waitMs > 0;
    this.#crowded += CROWDED_STEP * (Number(waits) - this.#crowded);
    if (this.#due.length > 0) {
      this.#due.push(leave);
      return;
    }
    if (!waits) {
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
