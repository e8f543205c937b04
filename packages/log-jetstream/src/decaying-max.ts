/** The largest of recent numbers: each number shrinks what the earlier ones left, so that a large one is forgotten. */
export class DecayingMax {
  readonly #min: number;
  readonly #decay: number;
  #value: number;

  /** `decay`: factor by which each number shrinks the maximum of the earlier ones. */
  constructor(min: number, decay: number) {
    this.#min = min;
    this.#decay = decay;
    this.#value = min;
  }

  get value(): number {
    return this.#value;
  }

  add(number: number): void {
    this.#value = Math.max(this.#min, number, this.#value * this.#decay);
  }
}
