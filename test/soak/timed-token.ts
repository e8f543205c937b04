/** Token `index` of an answer, sent at `atMs` of the monotonic clock. */
export function timedToken(index: number, atMs: number): string {
  return `${index}@${atMs.toFixed(1)} `;
}

/** Reads the tokens of one answer in the pieces in which a client receives them. */
export class TimedText {
  #rest = '';
  #next = 0;

  /** Number of tokens so far. */
  get tokens(): number {
    return this.#next;
  }

  /** The times at which the tokens that `piece` completes were sent. Throws when one is missing, repeated or out of order. */
  add(piece: string): number[] {
    const tokens = (this.#rest + piece).split(' ');
    this.#rest = tokens.pop()!;
    return tokens.map(token => {
      const [index, atMs] = token.split('@').map(Number) as [number, number];
      if (index !== this.#next) throw new Error(`token ${index} arrived in place of token ${this.#next}`);
      this.#next += 1;
      return atMs;
    });
  }

  /** The text begins again, because another attempt replaces it. */
  clear(): void {
    this.#rest = '';
    this.#next = 0;
  }
}
