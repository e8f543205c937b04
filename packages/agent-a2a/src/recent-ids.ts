/** The most recent ids, bounded: a repeated delivery follows the first one closely. */
export class RecentIds {
  readonly #ids = new Set<string>();
  /** The same ids, oldest at `#next`: an iteration to the oldest of the set would pass every place of a deleted one. */
  readonly #ring: string[] = [];
  #next = 0;
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  /** Returns false when the id was already added. */
  add(id: string): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    if (this.#ring.length === this.#max) this.#ids.delete(this.#ring[this.#next]!);
    this.#ring[this.#next] = id;
    this.#next = (this.#next + 1) % this.#max;
    return true;
  }
}
