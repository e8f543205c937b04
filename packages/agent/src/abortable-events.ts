import { STOP_MS_MAX } from './limits.ts';

/**
 * The events of an agent until `signal` aborts. When it aborts, the iteration ends at once, even if the agent ignores the signal, and the
 * agent gets STOP_MS_MAX to clean up. One abort listener serves the whole turn, because a `Promise.race` per event would keep a reaction
 * for each token until the turn ends.
 */
export class AbortableEvents<T> implements AsyncIterableIterator<T, undefined> {
  readonly #start: () => AsyncIterable<T>;
  readonly #signal: AbortSignal;
  #iterator: AsyncIterator<T> | undefined;
  #endStep = () => {};
  readonly #onAbort = () => {
    this.#isAborted = true;
    this.#endStep();
  };
  /** Stored in a field, because `aborted` of a combined signal walks over all of its sources. */
  #isAborted: boolean;
  #isOver = false;

  /** `start` is called with the first `next`, and never if the signal has aborted before. */
  constructor(start: () => AsyncIterable<T>, signal: AbortSignal) {
    this.#start = start;
    this.#signal = signal;
    this.#isAborted = signal.aborted;
    signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /**
   * Rejects with what the agent throws. Creates exactly one promise per step, because each further `await` would cost as much as writing a
   * token.
   */
  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#isAborted || this.#isOver) return this.return();
    return new Promise((resolve, reject) => {
      const thrown = (error: unknown) => void this.return().then(() => reject(error));
      // Comes first, because the agent may run until the signal aborts.
      this.#endStep = () => resolve(this.return());
      try {
        this.#iterator ??= this.#start()[Symbol.asyncIterator]();
        this.#iterator.next().then(step => {
          // After an abort between two steps, the next call of `next` ends the iteration and waits for the cleanup.
          this.#endStep = () => {};
          resolve(step.done === true ? this.return() : step);
        }, thrown);
      } catch (error) {
        thrown(error);
      }
    });
  }

  /** Ends the iteration, and waits up to STOP_MS_MAX for the agent to clean up. Never rejects. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#signal.removeEventListener('abort', this.#onAbort);
      if (this.#iterator?.return !== undefined) await withinStopTime(returned(this.#iterator));
    }
    return { done: true, value: undefined };
  }

  /** The events can be iterated once. */
  [Symbol.asyncIterator](): this {
    return this;
  }
}

/** The `return` of a hand-written iterator may throw, or return something other than a promise. */
async function returned(iterator: AsyncIterator<unknown>): Promise<void> {
  await iterator.return?.();
}

async function withinStopTime(stopping: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, STOP_MS_MAX);
  // An error while the agent cleans up does not change the result of the turn.
  await Promise.race([stopping.catch(() => {}), promise]);
  clearTimeout(timer);
}
