/** Raw sequences below which the shard's checkpoint must stay: something that follows from them has not happened yet. */
export class CheckpointBarriers {
  readonly #held = new Map<number, number>();

  hold(seq: number): void {
    this.#held.set(seq, (this.#held.get(seq) ?? 0) + 1);
  }

  release(seq: number): void {
    const count = (this.#held.get(seq) ?? 1) - 1;
    if (count === 0) this.#held.delete(seq);
    else this.#held.set(seq, count);
  }

  /** The lowest of those that are held, and `others`. */
  lowest(others: number | undefined): number | undefined {
    let lowest = others;
    for (const seq of this.#held.keys()) {
      if (lowest === undefined || seq < lowest) lowest = seq;
    }
    return lowest;
  }
}
