import { A2AError, fullJitterMs } from '@hopline/a2a/client';

/** Upper bound of the delay after the first failure of a store, doubled after each further one. The calls of the client have retried before. */
const REOPEN_BASE_MS = 1_000;
const REOPEN_WAIT_MS_MAX = 30_000;
/** Longest delay that a server may ask for. A page that stays open for a day should not wait a day for a server that was back after minutes. */
const ASKED_WAIT_MS_MAX = 300_000;

/** Whether a store tries again by itself. Other errors need the user: new credentials, another id. */
export function isTransient(error: unknown): boolean {
  return error instanceof A2AError && error.retryable;
}

/** The delays of a store that tries again until it succeeds or is closed. */
export class Reopening {
  readonly #open: () => void;
  #failed = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The server has asked for the delay that runs. */
  #isAsked = false;

  constructor(open: () => void) {
    this.#open = open;
  }

  /** Calls `open` after the next delay, to which the `Retry-After` of the error is added. */
  failed(error: unknown): void {
    this.stop();
    this.#failed += 1;
    const askedMs = error instanceof A2AError ? Math.min(error.retryAfterMs ?? 0, ASKED_WAIT_MS_MAX) : 0;
    this.#isAsked = askedMs > 0;
    const waitMs = askedMs + fullJitterMs(this.#failed, REOPEN_BASE_MS, REOPEN_WAIT_MS_MAX, Math.random);
    this.#timer = setTimeout(() => {
      this.#isAsked = false;
      this.#open();
    }, waitMs);
  }

  /** Calls `open` at once, because the user or the network has returned, unless the server has asked for the delay. */
  returned(): void {
    if (!this.#isAsked) this.#open();
  }

  succeeded(): void {
    this.#failed = 0;
  }

  /** Does not try again. */
  stop(): void {
    this.#isAsked = false;
    clearTimeout(this.#timer);
  }
}
