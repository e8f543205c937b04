/** The clock of the double. The double uses no other source of time, so a virtual clock makes its runs repeatable. */
export type Clock = {
  /** Epoch milliseconds. */
  nowMs(): number;
  /**
   * Calls `callback` after `delayMs`, and returns a function that cancels it. With 0 it runs after the current callback; several run in the order of
   * their calls.
   */
  after(delayMs: number, callback: () => void): () => void;
};

/** Calls back late rather than early, so that a deadline has passed when its timer fires. */
export const REAL_CLOCK: Clock = {
  nowMs: () => Date.now(),
  after(delayMs, callback) {
    if (delayMs <= 0) {
      const immediate = setImmediate(callback);
      return () => clearImmediate(immediate);
    }
    const timer = setTimeout(callback, Math.min(Math.ceil(delayMs), TIMER_MS_MAX));
    return () => clearTimeout(timer);
  },
};

/** Node fires a longer timer at once. Callers look at the time themselves and set their timer again. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** One timer that is set to its next deadline again and again. */
export class Alarm {
  readonly #clock: Clock;
  readonly #onDue: () => void;
  #cancel: (() => void) | undefined;
  #dueAtMs = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Replaces the deadline. POSITIVE_INFINITY removes it. */
  set(dueAtMs: number): void {
    if (dueAtMs === this.#dueAtMs) return;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#dueAtMs = dueAtMs;
    if (dueAtMs === Number.POSITIVE_INFINITY) return;
    this.#cancel = this.#clock.after(Math.max(1, dueAtMs - this.#clock.nowMs()), () => {
      this.#cancel = undefined;
      this.#dueAtMs = Number.POSITIVE_INFINITY;
      this.#onDue();
    });
  }

  stop(): void {
    this.set(Number.POSITIVE_INFINITY);
  }
}
