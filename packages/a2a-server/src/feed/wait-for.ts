import type { A2AError } from '@hopline/a2a';
import type { FeedListener, ListenableFeed, TaskChange } from './feed-listener.ts';

/** How a wait ended. */
export type Outcome = 'met' | 'timeout' | 'aborted';

type WaitOptions = {
  timeoutMs: number;
  /** Aborts when the client disconnects or the process drains. */
  signal: AbortSignal;
  /** Called after each record. The wait rejects with the error that it returns. */
  refusal?: () => A2AError | undefined;
};

/**
 * Resolves with `met` when `met` accepts a new change of the task, or with `timeout` or `aborted` if that comes first. Rejects with the feed's
 * error or with what `met` throws. It listens before it returns, so a caller can check the present state and wait for the next
 * one without missing a fact.
 */
export async function waitFor(feed: ListenableFeed, met: (fact: TaskChange) => boolean, options: WaitOptions): Promise<Outcome> {
  const { refusal = () => undefined } = options;
  return listening(feed, options, (resolve, reject) => {
    const onRecord = () => {
      const error = refusal();
      if (error !== undefined) reject(error);
    };
    const onChange = (fact: TaskChange) => {
      try {
        if (met(fact)) resolve('met');
      } catch (thrown) {
        reject(thrown);
      }
    };
    return { onChange, onRecord };
  });
}

/**
 * Resolves with `met` once the task has an event after `generation` or has ended; otherwise like `waitFor`. Rejects with the feed's error.
 */
export async function waitBeyond(
  feed: ListenableFeed,
  generation: number,
  options: Pick<WaitOptions, 'timeoutMs' | 'signal'>,
): Promise<Outcome> {
  const isBeyond = () => feed.generation > generation || feed.ended;
  return isBeyond() ? 'met' : waitUntil(feed, isBeyond, options);
}

/** Resolves with `met` once the feed has reached a state; otherwise like `waitFor`. Rejects with the feed's error. */
export async function waitUntil(feed: ListenableFeed, isReached: () => boolean, options: ListenOptions): Promise<Outcome> {
  if (feed.fault !== undefined) throw feed.fault;
  if (isReached()) return 'met';
  return listening(feed, options, resolve => ({
    onRecord: () => {
      if (isReached()) resolve('met');
    },
  }));
}

type ListenOptions = Pick<WaitOptions, 'timeoutMs'> & Partial<Pick<WaitOptions, 'signal'>>;

/** Adds the listener made by `listenerOf` to the feed, until the listener resolves or rejects or the wait ends for another reason. */
async function listening(
  feed: ListenableFeed,
  { timeoutMs, signal }: ListenOptions,
  listenerOf: (resolve: (outcome: Outcome) => void, reject: (thrown: unknown) => void) => FeedListener,
): Promise<Outcome> {
  if (feed.fault !== undefined) throw feed.fault;
  if (signal?.aborted) return 'aborted';
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
  const listener = { ...listenerOf(resolve, reject), onFault: reject };
  feed.listen(listener);
  const onAbort = () => resolve('aborted');
  signal?.addEventListener('abort', onAbort, { once: true });
  const timer = setTimeout(resolve, timeoutMs, 'timeout');
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
    feed.unlisten(listener);
  }
}

/** Starts `waitFor` and then calls `act`, so that the effect of `act` cannot be missed. If `act` fails, the wait ends with its error. */
export async function waitAround(
  act: () => Promise<void>,
  feed: ListenableFeed,
  met: (fact: TaskChange) => boolean,
  options: WaitOptions,
): Promise<Outcome> {
  const failed = new AbortController();
  const waiting = waitFor(feed, met, { ...options, signal: AbortSignal.any([options.signal, failed.signal]) });
  // `waiting` may reject before `act` is done. The await below still sees the rejection.
  waiting.catch(() => {});
  try {
    await act();
  } catch (thrown) {
    failed.abort();
    throw thrown;
  }
  return waiting;
}
