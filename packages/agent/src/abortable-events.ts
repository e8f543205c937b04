import { STOP_MS_MAX } from './limits.ts';

/**
 * The events of an agent until `signal` aborts. When it aborts, the iteration ends at once, even if the agent ignores the signal, and the
 * agent gets STOP_MS_MAX to clean up. One listener serves the whole turn: a `Promise.race` per event would keep one reaction per token
 * until the end.
 */
export class AbortableEvents<T> implements AsyncIterableIterator<T, undefined> {
  readonly #start: () => AsyncIterable<T>;
  readonly #signal: AbortSignal;
  #iterator: AsyncIterator<T> | undefined;
  #endStep = () => {};
  readonly #onAbort = () => this.#endStep();
  #isOver = false;

  /** `start` is called with the first `next`, and never if the signal has aborted before. */
  constructor(start: () => AsyncIterable<T>, signal: AbortSignal) {
    this.#start = start;
    this.#signal = signal;
    signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Rejects with what the agent throws. */
  async next(): Promise<IteratorResult<T, undefined>> {
    try {
      const step = this.#signal.aborted || this.#isOver ? undefined : await this.#step();
      if (step !== undefined && step.done !== true) return step;
    } catch (error) {
      await this.return();
      throw error;
    }
    return this.return();
  }

  /** Ends the iteration, and waits up to STOP_MS_MAX for the agent to clean up. Never rejects. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#signal.removeEventListener('abort', this.#onAbort);
      await withinStopTime(this.#iterator?.return?.());
    }
    return { done: true, value: undefined };
  }

  /** The events can be iterated once. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The agent's next step; undefined when the signal aborts first. */
  #step(): Promise<IteratorResult<T> | undefined> {
    this.#iterator ??= this.#start()[Symbol.asyncIterator]();
    const iterator = this.#iterator;
    return new Promise((resolve, reject) => {
      // First, because the agent may run until the signal aborts.
      this.#endStep = () => resolve(undefined);
      iterator.next().then(resolve, reject);
    });
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
