type Rate = { perSecond: number; burst: number };

/** A token bucket: `perSecond` on average, `burst` at once. Times are arguments, milliseconds of any monotonic clock. */
export class TokenBucket {
  readonly #rate: Rate;
  #tokens: number;
  #atMs: number;

  constructor(rate: Rate, nowMs: number) {
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#atMs = nowMs;
  }

  /** Milliseconds until `n` may be taken; 0 if they are available. A full bucket grants even more than its burst. */
  waitMs(n: number, nowMs: number): number {
    const missing = Math.min(n, this.#rate.burst) - this.#fill(nowMs);
    return missing <= 0 ? 0 : Math.ceil((1_000 * missing) / this.#rate.perSecond);
  }

  /** Takes `n` unconditionally. A debt must be repaid before more is available. */
  take(n: number, nowMs: number): void {
    this.#tokens = this.#fill(nowMs) - n;
  }

  isFull(nowMs: number): boolean {
    return this.#fill(nowMs) >= this.#rate.burst;
  }

  #fill(nowMs: number): number {
    const { perSecond, burst } = this.#rate;
    this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#atMs) * perSecond) / 1_000);
    this.#atMs = nowMs;
    return this.#tokens;
  }
}
