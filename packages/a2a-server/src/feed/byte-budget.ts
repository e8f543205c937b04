/** What holds memory that the log has as well. */
export type Emptiable = { empty(): void };

/**
 * Bytes of all holders of a process. Beyond its bound, holders are emptied: first those that have had nothing new for longest. They
 * call `remove` when they are empty.
 */
export class ByteBudget {
  readonly #bytesMax: number;
  /** The one that has had nothing new for longest is first. */
  readonly #holders = new Map<Emptiable, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Counts a holder that has something new. Its viewers are about to read that, so it is not emptied itself. */
  count(holder: Emptiable, bytes: number): void {
    this.remove(holder);
    this.#holders.set(holder, bytes);
    this.#bytes += bytes;
    for (const oldest of this.#holders.keys()) {
      if (this.#bytes <= this.#bytesMax || oldest === holder) return;
      oldest.empty();
    }
  }

  remove(holder: Emptiable): void {
    this.#bytes -= this.#holders.get(holder) ?? 0;
    this.#holders.delete(holder);
  }
}
