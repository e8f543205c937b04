import { FailedTry } from './failed-try.ts';
import type { CallOptions } from './notice.ts';

export type RetryLimits = {
  /** Tries in a row that brought nothing; then the last error is thrown. */
  triesMax: number;
  /** The same as long as nothing has ever answered: a wrong address should not take minutes. */
  unreachedTriesMax: number;
  /** Time from the first failure in a row to the beginning of the last try; milliseconds. */
  totalMsMax: number;
  /** The wait after the first failure is anything up to this, and up to twice as long after each further one; milliseconds. */
  baseMs: number;
  /** No wait is longer, but for what a server asks for; milliseconds. */
  waitMsMax: number;
};

/** Twenty tries take about two minutes: a restart, or a new version behind a load balancer. */
export const RETRY_LIMITS: RetryLimits = {
  triesMax: 20,
  unreachedTriesMax: 5,
  totalMsMax: 120_000,
  baseMs: 250,
  waitMsMax: 15_000,
};

/** A stream that held for so long was a good one, though it brought no event: a task may wait for days; milliseconds. */
export const STEADY_MS = 10_000;

/**
 * The tries of one call. Only those in a row count that brought nothing. Full jitter, because clients that lost one server together must not come back together
 * (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). Times are arguments, milliseconds of any clock.
 */
export class Tries {
  readonly #limits: RetryLimits;
  readonly #random: () => number;
  #failed = 0;
  #failingSinceMs = 0;
  #openedMs = Number.POSITIVE_INFINITY;
  #progressed = false;
  #reached = false;

  constructor(limits: RetryLimits, random: () => number = Math.random) {
    this.#limits = limits;
    this.#random = random;
  }

  /** Tries since the last one that brought something. */
  get failed(): number {
    return this.#failed;
  }

  /** A stream is open. */
  opened(nowMs: number): void {
    this.#openedMs = nowMs;
  }

  /** The try brought something. */
  progress(): void {
    this.#progressed = true;
  }

  /** Milliseconds to wait before the next try. Throws the error when there is none. */
  waitMs({ error, askedMs = 0, reached }: FailedTry, nowMs: number): number {
    this.#reached ||= reached;
    if (this.#progressed || nowMs - this.#openedMs >= STEADY_MS) this.#failed = 0;
    this.#progressed = false;
    this.#openedMs = Number.POSITIVE_INFINITY;
    if (this.#failed === 0) this.#failingSinceMs = nowMs;
    this.#failed += 1;
    const { triesMax, unreachedTriesMax, totalMsMax, baseMs, waitMsMax } = this.#limits;
    const waitMs = askedMs + this.#random() * Math.min(waitMsMax, baseMs * 2 ** (this.#failed - 1));
    const last =
      this.#failed >= (this.#reached ? triesMax : unreachedTriesMax) || nowMs + waitMs - this.#failingSinceMs > totalMsMax;
    if (!error.retryable || last) throw error;
    return waitMs;
  }
}

/** Waits until the next try may begin. Throws what was thrown when it cannot be tried again, and the signal's reason when that aborts. */
export async function pause(tries: Tries, thrown: unknown, { signal, onNotice }: CallOptions): Promise<void> {
  signal?.throwIfAborted();
  if (!(thrown instanceof FailedTry)) throw thrown;
  const waitMs = tries.waitMs(thrown, performance.now());
  onNotice?.({ kind: 'retry', error: thrown.error, tries: tries.failed, waitMs });
  await sleep(waitMs, signal);
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done);
    if (signal?.aborted) done();
  });
}
