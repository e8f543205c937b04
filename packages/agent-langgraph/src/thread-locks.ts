/**
 * A thread has one turn at a time in this process: two tasks of one context would read each other's state and write each other's checkpoints. A server also queues runs, whoever sends them.
 */
export class ThreadLocks {
  readonly #last = new Map<string, Promise<void>>();

  /** Resolves when it is the turn's turn, or when `signal` aborts; the function lets the next one go. */
  async lock(thread: string, signal: AbortSignal): Promise<() => void> {
    const before = this.#last.get(thread) ?? Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const mine = before.then(() => promise);
    this.#last.set(thread, mine);
    // Not when this turn lets go: one that was aborted while it waited must not let the next one past the turn it waited for.
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
