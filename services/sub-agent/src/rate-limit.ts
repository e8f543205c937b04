const SECOND_MS = 1_000;

/** Allows `perSecond` events in each window of one second, which begins with its first event. */
export class RateLimit {
  readonly #perSecond: number;
  readonly #now: () => number;
  #startedMs = Number.NEGATIVE_INFINITY;
  #taken = 0;

  /** `now`: monotonic milliseconds. */
  constructor(perSecond: number, now = () => performance.now()) {
    this.#perSecond = perSecond;
    this.#now = now;
  }

  /** Returns false above the limit. */
  take(): boolean {
    const nowMs = this.#now();
    if (nowMs - this.#startedMs >= SECOND_MS) {
      this.#startedMs = nowMs;
      this.#taken = 0;
    }
    if (this.#taken >= this.#perSecond) return false;
    this.#taken += 1;
    return true;
  }
}
