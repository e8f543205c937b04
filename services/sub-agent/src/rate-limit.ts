const SECOND_MS = 1_000;

/** At most `perSecond` within each second that begins with the first of them. */
export class RateLimit {
  readonly #perSecond: number;
  readonly #now: () => number;
  #beganMs = Number.NEGATIVE_INFINITY;
  #taken = 0;

  /** `now`: monotonic milliseconds. */
  constructor(perSecond: number, now = () => performance.now()) {
    this.#perSecond = perSecond;
    this.#now = now;
  }

  /** False: not now. */
  take(): boolean {
    const nowMs = this.#now();
    if (nowMs - this.#beganMs >= SECOND_MS) {
      this.#beganMs = nowMs;
      this.#taken = 0;
    }
    if (this.#taken >= this.#perSecond) return false;
    this.#taken += 1;
    return true;
  }
}
