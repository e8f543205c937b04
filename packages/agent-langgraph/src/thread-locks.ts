/**
 * Runs one turn per thread at a time: otherwise two tasks of one context would read and overwrite each other's checkpoints. Used only for
 * local graphs, because a server queues runs itself.
 */
export class ThreadLocks {
  readonly #last = new Map<string, Promise<void>>();

  /** Resolves with a release function when the thread is free, or when `signal` aborts. */
  async lock(thread: string, signal: AbortSignal): Promise<() => void> {
    const before = this.#last.get(thread) ?? Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const mine = before.then(() => promise);
    this.#last.set(thread, mine);
    // Waits for `before` as well as for the release. Otherwise a turn that is aborted while it waits would let the next turn overtake the
    // running one.
    void mine.then(() => {
      if (this.#last.get(thread) === mine) this.#last.delete(thread);
    });
    await untilAborted(before, signal);
    return resolve;
  }
}

async function untilAborted(before: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  const abort = () => resolve();
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  await Promise.race([before, aborted]);
  signal.removeEventListener('abort', abort);
}
