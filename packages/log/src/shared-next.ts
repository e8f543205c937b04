/** Runs a function without overlapping runs: all calls during a run share the next run. */
export class SharedNext<T> {
  readonly #run: () => Promise<T>;
  #current: Promise<T> | undefined;
  #next: Promise<T> | undefined;

  constructor(run: () => Promise<T>) {
    this.#run = run;
  }

  /** The result of a run that begins after this call. */
  next(): Promise<T> {
    if (this.#next !== undefined) return this.#next;
    if (this.#current === undefined) return this.#begin();
    const begin = () => {
      this.#next = undefined;
      return this.#begin();
    };
    this.#next = this.#current.then(begin, begin);
    return this.#next;
  }

  #begin(): Promise<T> {
    this.#current = this.#run().finally(() => {
      this.#current = undefined;
    });
    return this.#current;
  }
}
