/** Lets so many in at a time; the others wait in the order in which they came. */
export class Gate {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(places: number) {
    this.#free = places;
  }

  /** Resolves with what gives the place back, or with undefined when `signal` aborts first. */
  async enter(signal: AbortSignal): Promise<(() => void) | undefined> {
    if (signal.aborted) return undefined;
    if (this.#free > 0) {
      this.#free -= 1;
      return this.#place();
    }
    return new Promise(resolve => {
      const onAbort = () => {
        this.#waiting.delete(admit);
        resolve(undefined);
      };
      const admit = () => {
        signal.removeEventListener('abort', onAbort);
        resolve(this.#place());
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(admit);
    });
  }

  /** A place is handed on, never freed and taken again: nobody overtakes. */
  #place(): () => void {
    let left = false;
    return () => {
      if (left) return;
      left = true;
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

/** A gate per host, for as long as somebody is in it or waits at it. */
export class HostGates {
  readonly #places: number;
  readonly #gates = new Map<string, { gate: Gate; users: number }>();

  constructor(places: number) {
    this.#places = places;
  }

  get size(): number {
    return this.#gates.size;
  }

  async enter(host: string, signal: AbortSignal): Promise<(() => void) | undefined> {
    const found = this.#gates.get(host) ?? { gate: new Gate(this.#places), users: 0 };
    this.#gates.set(host, found);
    found.users += 1;
    const forget = () => {
      found.users -= 1;
      if (found.users === 0) this.#gates.delete(host);
    };
    const leave = await found.gate.enter(signal);
    if (leave === undefined) {
      forget();
      return undefined;
    }
    let left = false;
    return () => {
      if (left) return;
      left = true;
      leave();
      forget();
    };
  }
}
