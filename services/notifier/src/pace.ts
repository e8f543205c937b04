export type PaceLimits = {
  /** Least time between two notifications. */
  intervalMs: number;
  /** Bytes of bodies in a second. */
  bytesPerSecondMax: number;
};

/** Bytes that may be sent at once, as the time that they take at the limit. */
const BURST_MS = 1_000;

/**
 * When the next notification of a webhook may be sent. A body larger than the limit is sent whole, and the next one waits for its
 * time: in A2A 0.3 each body is the whole task, and a task grows. Times are monotonic milliseconds.
 */
export class Pace {
  readonly #limits: PaceLimits;
  #notBefore = 0;
  /** When all bytes sent so far have had their time. */
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

  /** Until the next notification. */
  waitMs(nowMs: number): number {
    return Math.max(0, this.#notBefore - nowMs, this.#settledAt - BURST_MS - nowMs);
  }

  /** Until a new pace, which knows nothing of the bytes of this one, may send. */
  settledInMs(nowMs: number): number {
    return Math.max(0, this.#notBefore - nowMs, this.#settledAt - nowMs);
  }
}
