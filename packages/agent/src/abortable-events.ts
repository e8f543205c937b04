import { STOP_MS_MAX } from './limits.ts';

/**
 * The events of an agent until `signal` aborts. When it aborts, the iteration ends at once, even if the agent ignores the signal, and the
 * agent gets STOP_MS_MAX to clean up. One listener serves the whole turn: a `Promise.race` per event would keep one reaction per token
 * until the end.
 */
export async function* abortableEvents<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  let onAbort = () => {};
  const abort = () => onAbort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    while (!signal.aborted) {
      const step = await new Promise<IteratorResult<T> | undefined>((resolve, reject) => {
        onAbort = () => resolve(undefined);
        iterator.next().then(resolve, reject);
      });
      if (step === undefined || step.done === true) return;
      yield step.value;
    }
  } finally {
    signal.removeEventListener('abort', abort);
    await withinStopTime(iterator.return?.());
  }
}

async function withinStopTime(stopping: Promise<unknown> | undefined): Promise<void> {
  if (stopping === undefined) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, STOP_MS_MAX);
  // An error while the agent cleans up does not change the result of the turn.
  await Promise.race([stopping.catch(() => {}), promise]);
  clearTimeout(timer);
}
