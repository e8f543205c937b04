/** A stream of random numbers that follows from its seed (sfc32). */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #count = 1;

  /** Streams of one seed with different names are independent: a draw from one does not affect the others. */
  constructor(seed: number, name = '') {
    let hash = 2166136261 ^ seed;
    for (const unit of `${seed}/${name}`) hash = Math.imul(hash ^ unit.charCodeAt(0), 16777619);
    this.#a = hash >>> 0;
    this.#b = Math.imul(hash, 0x9e3779b9) >>> 0;
    this.#c = seed >>> 0;
    for (let warmUp = 0; warmUp < 12; warmUp++) this.uint32();
  }

  uint32(): number {
    const sum = (this.#a + this.#b + this.#count++) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return sum >>> 0;
  }

  /** A number from 0 to below 1. */
  next(): number {
    return this.uint32() / 0x1_0000_0000;
  }

  /** An integer from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.next() * choices.length)]!;
  }
}
