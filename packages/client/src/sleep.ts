import { TIMER_MS_MAX } from './limits.ts';

/** The global of pages and workers, which reports that the network has returned to the browser. Node has no such events. */
type Page = Partial<Pick<EventTarget, 'addEventListener' | 'removeEventListener'>>;

/**
 * Rejects with the reason of `signal` when it aborts. `onOnline`: called when the network returns to the browser, which also ends the wait,
 * because a wait after a failure should not go on when its cause is gone.
 */
export function sleep(ms: number, signal?: AbortSignal, onOnline?: () => void): Promise<void> {
  const page: Page = onOnline === undefined ? {} : (globalThis as unknown as Page);
  return new Promise((resolve, reject) => {
    const online = () => {
      onOnline?.();
      done();
    };
    const done = () => {
      clearTimeout(timer);
      page.removeEventListener?.('online', online);
      // Without this, each wait of a long call would leave a listener behind.
      signal?.removeEventListener('abort', done);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(done, Math.min(ms, TIMER_MS_MAX));
    page.addEventListener?.('online', online);
    signal?.addEventListener('abort', done);
    if (signal?.aborted) done();
  });
}
