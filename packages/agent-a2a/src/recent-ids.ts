/**
 * Recent ids: at least the `max` newest and fewer than twice as many. A repeated delivery follows the first one closely. Two sets, of
 * which the older is dropped whole, because deleting single ids costs more than the rest of a token.
 */
export class RecentIds {
  #newer = new Set<string>();
  #older = new Set<string>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  /** Returns false when the id was already added. */
  add(id: string): boolean {
    if (this.#older.has(id)) return false;
    const before = this.#newer.size;
    this.#newer.add(id);
    if (this.#newer.size === before) return false;
    if (this.#newer.size >= this.#max) {
      this.#older = this.#newer;
      this.#newer = new Set();
    }
    return true;
  }
}
