import { fullJitterMs } from '@hopline/a2a';

/** Backoff of a writer or reader of the log, with full jitter and at least `minMs`. `failures` is 1 after the first failure. */
export function backoffMs(failures: number, baseMs: number, maxMs: number, minMs = 0): number {
  return Math.max(minMs, fullJitterMs(failures, baseMs, maxMs, Math.random));
}

/** Waits, and returns early when `signal` aborts. It does not throw, because the stack trace of an error would cost more than the timer. */
export function sleepUnlessAborted(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise(resolve => {
    const end = () => {
      clearTimeout(timer);
      // Without this, each wait would leave a listener behind.
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
