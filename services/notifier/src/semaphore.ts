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

/** One semaphore per host, kept while a slot of it is held or awaited. */
export class HostSemaphores {
  readonly #slots: number;
  readonly #hosts = new Map<string, { semaphore: Semaphore; users: number }>();

  constructor(slots: number) {
    this.#slots = slots;
  }

  get size(): number {
    return this.#hosts.size;
  }

  async acquire(host: string, signal: AbortSignal): Promise<Release | undefined> {
    const found = this.#hosts.get(host) ?? { semaphore: new Semaphore(this.#slots), users: 0 };
    this.#hosts.set(host, found);
    found.users += 1;
    const removeUser = () => {
      found.users -= 1;
      if (found.users === 0) this.#hosts.delete(host);
    };
    const release = await found.semaphore.acquire(signal);
    if (release === undefined) {
      removeUser();
      return undefined;
    }
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      release();
      removeUser();
    };
  }
}
