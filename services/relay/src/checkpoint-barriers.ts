/**
 * Input sequences that hold back the shard's checkpoint while one of their appends or side effects is in flight. A sequence may be
 * held more than once.
 */
export class CheckpointBarriers {
  readonly #holds = new Map<number, number>();

  hold(seq: number): void {
    this.#holds.set(seq, (this.#holds.get(seq) ?? 0) + 1);
  }

  release(seq: number): void {
    const count = (this.#holds.get(seq) ?? 1) - 1;
    if (count === 0) this.#holds.delete(seq);
    else this.#holds.set(seq, count);
  }

  /** The lowest of `other` and the held sequences. */
  lowest(other: number | undefined): number | undefined {
    let lowest = other;
    for (const seq of this.#holds.keys()) {
      if (lowest === undefined || seq < lowest) lowest = seq;
    }
    return lowest;
  }
}
