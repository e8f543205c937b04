export type DeadlineLimits = {
  /** Milliseconds from the start to the first event. */
  firstEventMsMax: number;
  /** Milliseconds between two events. */
  silenceMsMax: number;
  /** Milliseconds from the start to the end. */
  totalMsMax: number;
};

/** The limit that was exceeded, and its milliseconds. */
export type MissedDeadline = { limit: 'first-event' | 'silence' | 'total'; ms: number };

/**
 * Aborts an operation whose peer starts too late, falls silent, or takes too long altogether; an infinite limit sets no timer. `signal`
 * also aborts with the signal of the caller.
 */
export class Deadlines<Fault extends Error> implements Disposable {
  readonly signal: AbortSignal;
  readonly #abort = new AbortController();
  readonly #faultOf: (missed: MissedDeadline) => Fault;
  readonly #silenceMsMax: number;
  readonly #total: NodeJS.Timeout | undefined;
  #silence: NodeJS.Timeout | undefined;
  #hasBegun = false;
  #isPaused = false;
  #fault: Fault | undefined;

  constructor(limits: DeadlineLimits, faultOf: (missed: MissedDeadline) => Fault, caller?: AbortSignal) {
    const { firstEventMsMax, silenceMsMax, totalMsMax } = limits;
    this.signal = caller === undefined ? this.#abort.signal : AbortSignal.any([caller, this.#abort.signal]);
    this.#faultOf = faultOf;
    this.#silenceMsMax = silenceMsMax;
    this.#total = timer(totalMsMax, () => this.#expire({ limit: 'total', ms: totalMsMax }));
    this.#silence = timer(firstEventMsMax, () => this.#expireUnlessPaused({ limit: 'first-event', ms: firstEventMsMax }));
  }

  /** Why the operation was aborted. Undefined when it was not, or when the caller aborted it. */
  get fault(): Fault | undefined {
    return this.#fault;
  }

  /** Records an event of the peer, and ends a pause. Runs once per token: after the first event it only refreshes a timer. */
  touch(): void {
    this.#isPaused = false;
    if (this.#hasBegun) {
      this.#silence?.refresh();
      return;
    }
    this.#hasBegun = true;
    clearTimeout(this.#silence);
    const ms = this.#silenceMsMax;
    this.#silence = timer(ms, () => this.#expireUnlessPaused({ limit: 'silence', ms }));
  }

  /** Stops counting silence while our side processes an event and does not read. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#silence?.refresh();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#total);
    clearTimeout(this.#silence);
    // After an abort before the first event, a late first event must set no timer.
    this.#hasBegun = true;
  }

  #expireUnlessPaused(missed: MissedDeadline): void {
    if (!this.#isPaused) this.#expire(missed);
  }

  #expire(missed: MissedDeadline): void {
    this.#fault ??= this.#faultOf(missed);
    this.#abort.abort(this.#fault);
  }
}

function timer(ms: number, onExpired: () => void): NodeJS.Timeout | undefined {
  return Number.isFinite(ms) ? setTimeout(onExpired, Math.max(0, ms)) : undefined;
}
