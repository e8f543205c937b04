/** Releases a slot. Later calls do nothing. */
export type Release = () => void;

/** A bounded number of slots, granted in the order of the requests. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(slots: number) {
    this.#free = slots;
  }

  /** Resolves with undefined when `signal` aborts before a slot is free. */
  async acquire(signal: AbortSignal): Promise<Release | undefined> {
    if (signal.aborted) return undefined;
    if (this.#free > 0) {
      this.#free -= 1;
      return this.#slot();
    }
    return new Promise(resolve => {
      const onAbort = () => {
        this.#waiting.delete(grant);
        resolve(undefined);
      };
      const grant = () => {
        signal.removeEventListener('abort', onAbort);
        resolve(this.#slot());
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(grant);
    });
  }

  /** A released slot passes to the oldest waiter without becoming free, so that no later request can overtake it. */
  #slot(): Release {
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      const [next] = this.#waiting;
      if (next === undefined) {
        this.#free += 1;
        return;
      }
      this.#waiting.delete(next);
      next();
    };
  }
}
