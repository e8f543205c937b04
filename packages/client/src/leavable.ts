import type { CallOptions } from './notice.ts';

/** The reason with which a stream ends its own requests. Callers never see it. */
const LEFT = new Error('the caller has left the stream');

/**
 * A stream whose `return` closes the connection at once, even while a `next` waits: the one of an async generator waits for the next event, which may
 * come after days.
 */
export function leavable<C extends CallOptions, T>(
  call: C,
  open: (call: C) => AsyncGenerator<T, void, undefined>,
): AsyncGenerator<T, void, undefined> {
  const { signal } = call;
  const left = new AbortController();
  const onAbort = () => left.abort(signal?.reason);
  async function* read(): AsyncGenerator<T, void, undefined> {
    signal?.addEventListener('abort', onAbort);
    if (signal?.aborted) onAbort();
    try {
      yield* open({ ...call, signal: left.signal });
    } catch (thrown) {
      if (thrown !== LEFT) throw thrown;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }
  const items = read();
  const leave = items.return.bind(items);
  const value: typeof leave = result => {
    left.abort(LEFT);
    return leave(result);
  };
  return Object.defineProperty(items, 'return', { value });
}
