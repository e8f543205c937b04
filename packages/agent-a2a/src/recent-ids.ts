import { hash } from 'node:crypto';

/** UTF-16 units up to which an id is kept unchanged. Of a longer id only the hash is kept. */
export const KEPT_ID_UNITS_MAX = 128;

/** The stored form of an id: a turn keeps thousands of them, and a remote agent may send each as long as a whole event. */
export function keptId(id: string): string {
  // Does not hash UTF-8, in which ids that differ only in half a surrogate pair are equal.
  return id.length <= KEPT_ID_UNITS_MAX ? id : hash('sha256', Buffer.from(id, 'utf16le'));
}

/**
 * Recent ids: at least the `max` newest and fewer than twice as many. A repeated delivery follows the first one closely. Two sets, the older
 * of which is dropped as a whole, because deleting single ids would cost more than the rest of a token.
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
    const kept = keptId(id);
    if (this.#older.has(kept)) return false;
    const before = this.#newer.size;
    this.#newer.add(kept);
    if (this.#newer.size === before) return false;
    if (this.#newer.size >= this.#max) {
      this.#older = this.#newer;
      this.#newer = new Set();
    }
    return true;
  }
}
