/** Delay in milliseconds between two attempts to reach one NATS server, and the largest random addition to it. */
const WAIT_MS = 250;
const JITTER_MS = 250;
/** A clock step smaller than this delays an attempt by less than two such delays. */
const STEP_MS_MIN = 1_000;
/** Attempts after a clock step that ignore the clock: one for each server that a client may know. */
const SERVERS_MAX = 8;

type Clocks = { wallNow(): number; now(): number };

/**
 * The delays of a connection that is opened again. nats.js 3.4 starts an attempt when the wall clock has passed the time of the last
 * attempt at the same server plus the delay. If the clock was set back in between, nats.js would not start one until the clock has caught
 * up. In that case the delay is negative, by as much as the clock was set back.
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
