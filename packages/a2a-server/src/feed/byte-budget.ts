/** Something that holds memory whose content can be read again from the log. */
export type Emptiable = { empty(): void };

/**
 * Counts the bytes of all holders of a process. When they exceed the bound, holders are emptied, beginning with those that have been idle
 * for longest. A holder calls `remove` when it is empty.
 */
export class ByteBudget {
  readonly #bytesMax: number;
  /** Ordered by the last addition, so that the holder that has been idle the longest is first. */
  readonly #holders = new Map<Emptiable, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Counts a holder that has just received something. That holder itself is not emptied, because its viewers are about to read the
   * addition.
   */
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
