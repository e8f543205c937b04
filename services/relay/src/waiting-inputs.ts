/** Counting costs a step for each task of the relay, so it is repeated at most once in this time. */
const COUNT_MS = 5;

/** The inputs of all shards of a relay that wait for an append (UTF-16 units) or for their task to be read (bytes). */
export class WaitingInputs {
  readonly #shards = new Set<() => number>();
  readonly #now: () => number;
  #units = 0;
  #countedAtMs = Number.NEGATIVE_INFINITY;

  /** `now`: monotonic milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Counts the inputs of a shard until the returned function is called. */
  add(count: () => number): () => void {
    this.#shards.add(count);
    return () => this.#shards.delete(count);
  }

  get units(): number {
    const nowMs = this.#now();
    if (nowMs - this.#countedAtMs >= COUNT_MS) {
      this.#countedAtMs = nowMs;
      this.#units = 0;
      for (const count of this.#shards) this.#units += count();
    }
    return this.#units;
  }
}
