/** Milliseconds between two attempts to reach one server of NATS, and the most that chance adds. */
const WAIT_MS = 250;
const JITTER_MS = 250;
/** A step of the wall clock that is smaller delays an attempt by less than two of them. */
const STEP_MS_MIN = 1_000;
/** Attempts after a step that do not wait for the clock: one for each server that a client may know. */
const SERVERS_MAX = 8;

type Clocks = { wallNow(): number; now(): number };

/**
 * The delays of a connection that is opened again. nats.js 3.4 begins an attempt once the wall clock is later than that of the last attempt at the same
 * server and the delay. If the clock was set back meanwhile, it would begin none until the clock has caught up, so the delay is less than nothing then, by
 * as much as the clock was set back.
 */
export class ReconnectDelay {
  readonly #clocks: Clocks;
  #offset: number;
  #setBackMs = 0;
  #attempts = 0;

  constructor(clocks: Clocks = { wallNow: () => Date.now(), now: () => performance.now() }) {
    this.#clocks = clocks;
    this.#offset = this.#readOffset();
  }

  /** Milliseconds, called before each attempt. */
  next(): number {
    const delayMs = WAIT_MS + Math.random() * JITTER_MS;
    const offset = this.#readOffset();
    const setBackMs = this.#offset - offset;
    this.#offset = offset;
    if (setBackMs >= STEP_MS_MIN) {
      this.#setBackMs = (this.#attempts > 0 ? this.#setBackMs : 0) + setBackMs;
      this.#attempts = SERVERS_MAX;
    }
    if (this.#attempts === 0) return delayMs;
    this.#attempts -= 1;
    return delayMs - this.#setBackMs;
  }

  #readOffset(): number {
    return this.#clocks.wallNow() - this.#clocks.now();
  }
}
