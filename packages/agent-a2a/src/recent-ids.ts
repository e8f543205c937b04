import { hash } from 'node:crypto';

/** UTF-16 units up to which an id is kept unchanged. A longer id is kept as a hash. */
export const KEPT_ID_UNITS_MAX = 128;

/**
 * The stored form of an id. It is short, because a turn keeps thousands of ids, and a remote agent may send ids as long as a whole event.
 */
export function keptId(id: string): string {
  // Hashes UTF-16, because in UTF-8 ids that differ only in half a surrogate pair would be equal.
  return id.length <= KEPT_ID_UNITS_MAX ? id : hash('sha256', Buffer.from(id, 'utf16le'));
}

/**
 * Recent ids: at least the `max` newest and fewer than twice as many. That is enough, because a repeated delivery follows the first one
 * closely. The ids are in two sets, and the older set is dropped as a whole, because deleting single ids would cost more than the rest of a
 * token.
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
