export type PaceLimits = {
  /** Minimum time between two notifications. */
  intervalMs: number;
  /** Bytes of bodies per second. */
  bytesPerSecondMax: number;
};

/** Bytes that may be sent at once, expressed as the time that sending them takes at the limit. */
const BURST_MS = 1_000;

/**
 * When the next notification of a webhook may be sent. A body larger than the limit is sent whole, and the next one waits as long as that
 * body takes at the limit. In A2A 0.3 each body is the whole task, which keeps growing. Times are monotonic milliseconds.
 */
export class Pace {
  readonly #limits: PaceLimits;
  #notBefore = 0;
  /** Time from which the bytes sent so far are within the limit. */
  #settledAt = 0;

  constructor(limits: PaceLimits) {
    this.#limits = limits;
  }

  sent(bytes: number, nowMs: number): void {
    this.#settledAt = Math.max(this.#settledAt, nowMs) + (bytes * 1_000) / this.#limits.bytesPerSecondMax;
  }

  delivered(nowMs: number): void {
    this.#notBefore = nowMs + this.#limits.intervalMs;
  }

  /** Delay before the next notification. */
  waitMs(nowMs: number): number {
    return Math.max(0, this.#notBefore - nowMs, this.#settledAt - BURST_MS - nowMs);
  }

  /** Delay before a new `Pace` may send, because it does not know the bytes counted here. */
  settledInMs(nowMs: number): number {
    return Math.max(0, this.#notBefore - nowMs, this.#settledAt - nowMs);
  }
}
