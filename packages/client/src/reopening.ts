import { A2AError, fullJitterMs } from '@hopline/a2a/client';

/** Upper bound of the delay after the first failure of a store, doubled after each further one. The calls of the client have retried before. */
const REOPEN_BASE_MS = 1_000;
const REOPEN_WAIT_MS_MAX = 30_000;

/** Whether a store tries again by itself. Other errors need the user: new credentials, another id. */
export function isTransient(error: unknown): boolean {
  return error instanceof A2AError && error.retryable;
}

/** The delays of a store that tries again until it succeeds or is closed. */
export class Reopening {
  readonly #open: () => void;
  #failed = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(open: () => void) {
    this.#open = open;
  }

  /** Calls `open` after the next delay. */
  failed(): void {
    this.stop();
    this.#failed += 1;
    this.#timer = setTimeout(this.#open, fullJitterMs(this.#failed, REOPEN_BASE_MS, REOPEN_WAIT_MS_MAX, Math.random));
  }

  succeeded(): void {
    this.#failed = 0;
  }

  /** Does not try again. */
  stop(): void {
    clearTimeout(this.#timer);
  }
}
