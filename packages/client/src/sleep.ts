import { TIMER_MS_MAX } from './limits.ts';

/** Rejects with the reason of `signal` when it aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = () => {
      clearTimeout(timer);
      // Without this, each wait of a long call would leave a listener behind.
      signal?.removeEventListener('abort', done);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(done, Math.min(ms, TIMER_MS_MAX));
    signal?.addEventListener('abort', done);
    if (signal?.aborted) done();
  });
}
