/** By hash; an id whose hash another one has takes the next number. */
type Ids = Map<number, string>;

/**
 * Recent ids: at least the `max` newest and fewer than twice as many. A repeated delivery follows the first one closely. Two maps, of
 * which the older is dropped whole, because deleting single ids costs more than the rest of a token. The ids themselves are no keys: V8
 * enters a string that becomes a key into a table of all strings of the process, which takes three times as long as all of this.
 */
export class RecentIds {
  #newer: Ids = new Map();
  #older: Ids = new Map();
  readonly #max: number;
  /** Random, so that no agent can make ids of one hash. */
  readonly #seed = Math.floor(Math.random() * 2 ** 32);
  readonly #hash: typeof hashOf;

  /** `hash`: only a test passes another. */
  constructor(max: number, hash = hashOf) {
    this.#max = max;
    this.#hash = hash;
  }

  /** Returns false when the id was already added. */
  add(id: string): boolean {
    const hash = this.#hash(id, this.#seed);
    if (freeKey(this.#older, id, hash) === undefined) return false;
    const key = freeKey(this.#newer, id, hash);
    if (key === undefined) return false;
    this.#newer.set(key, id);
    if (this.#newer.size >= this.#max) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    return true;
  }
}

/** The key for a new id; undefined when it is there. */
function freeKey(ids: Ids, id: string, hash: number): number | undefined {
  for (let key = hash; ; key += 1) {
    const known = ids.get(key);
    if (known === undefined) return key;
    if (known === id) return undefined;
  }
}

/** FNV-1a over UTF-16 units, 30 bits: V8 stores such numbers without an object. */
function hashOf(id: string, seed: number): number {
  let hash = seed;
  for (let index = 0; index < id.length; index += 1) hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193);
  return hash & 0x3fffffff;
}
