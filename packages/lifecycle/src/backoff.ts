import { setTimeout as sleep } from 'node:timers/promises';

export interface RetryOptions {
  /** Calls of `fn`, the first one included; >= 1. */
  readonly attemptsMax: number;
  /** Upper edge of the first delay; milliseconds. */
  readonly baseMs: number;
  /** Upper edge of every delay; milliseconds. */
  readonly capMs: number;
  /** No attempt begins after this; milliseconds since the call. */
  readonly totalMsMax: number;
  readonly signal: AbortSignal;
  /** False ends the retries at once. Default: everything is retryable. */
  readonly retryable?: (error: unknown) => boolean;
  /** 0 <= random() < 1; tests give their own. */
  readonly random?: () => number;
}

/**
 * Calls `fn` until it resolves, with full jitter between calls: `random() * min(capMs, baseMs * 2^n)`, the variant that spreads a herd best
 * (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). `fn` gets the number of the attempt, from 1.
 * Rejects with the last error when attempts, time or retryability end, and with the signal's reason when it aborts.
 */
export async function retry<T>(fn: (attempt: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const deadlineMs = performance.now() + options.totalMsMax;
  for (let attempt = 1; ; attempt++) {
    options.signal.throwIfAborted();
    try {
      return await fn(attempt);
    } catch (error) {
      options.signal.throwIfAborted();
      const delayMs = backoffMs(attempt, options);
      const over = attempt >= options.attemptsMax || performance.now() + delayMs > deadlineMs;
      if (over || options.retryable?.(error) === false) throw error;
      // The signal's own reason, not the timer's AbortError, is what callers look for.
      await sleep(delayMs, undefined, { signal: options.signal }).catch(() => options.signal.throwIfAborted());
    }
  }
}

/** Delay after the `attempt`-th failure, from 1; milliseconds. For loops that cannot be one `retry`. */
export function backoffMs(attempt: number, options: Pick<RetryOptions, 'baseMs' | 'capMs' | 'random'>): number {
  const edgeMs = Math.min(options.capMs, options.baseMs * 2 ** (attempt - 1));
  return (options.random ?? Math.random)() * edgeMs;
}
