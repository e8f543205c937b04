import type { TaskChange, TaskFeed } from './task-feed.ts';

export type WaitOptions = {
  timeoutMs: number;
  /** Aborts when the client disconnects or the process drains. */
  signal: AbortSignal;
};

/**
 * Resolves with `met` when `met` accepts a new change of the task, or with `timeout` or `aborted` if that comes first. Rejects with the feed's
 * error or with what `met` throws. It listens before it returns, so a caller can check the present state and wait for the next
 * one without missing a fact.
 */
export async function waitFor(
  feed: TaskFeed,
  met: (fact: TaskChange) => boolean,
  options: WaitOptions,
): Promise<'met' | 'timeout' | 'aborted'> {
  if (feed.fault !== undefined) throw feed.fault;
  if (options.signal.aborted) return 'aborted';
  const { promise, resolve, reject } = Promise.withResolvers<'met' | 'timeout' | 'aborted'>();
  const onChange = (fact: TaskChange) => {
    try {
      if (met(fact)) resolve('met');
    } catch (thrown) {
      reject(thrown);
    }
  };
  const listener = { onChange, onFault: reject };
  feed.listen(listener);
  const onAbort = () => resolve('aborted');
  options.signal.addEventListener('abort', onAbort, { once: true });
  const timer = setTimeout(resolve, options.timeoutMs, 'timeout');
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener('abort', onAbort);
    feed.unlisten(listener);
  }
}

/** Starts `waitFor`, then calls `act`, so the effect of `act` cannot be missed. When `act` fails, the wait ends with it. */
export async function waitAround(
  act: () => Promise<void>,
  feed: TaskFeed,
  met: (fact: TaskChange) => boolean,
  options: WaitOptions,
): Promise<'met' | 'timeout' | 'aborted'> {
  const failed = new AbortController();
  const waiting = waitFor(feed, met, { ...options, signal: AbortSignal.any([options.signal, failed.signal]) });
  // `waiting` may reject before `act` is done; the await below still sees the rejection.
  waiting.catch(() => {});
  try {
    await act();
  } catch (thrown) {
    failed.abort();
    throw thrown;
  }
  return waiting;
}
