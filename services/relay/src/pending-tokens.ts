import type { Producer } from '@hopline/events';

/** A run of tokens of one raw record that the coalescer still holds, or part of it. */
type Held = {
  seq: number;
  n: number;
  count: number;
  /** UTF-16 units of the first token that were in the log before it was read again. */
  units: number;
  trace: string | undefined;
};

export type Taken = {
  first: number;
  last: number;
  n: number;
  units: number;
  firstTrace: string | undefined;
  lastTrace: string | undefined;
};

/**
 * Where the tokens held for one lane came from: the coalescer only counts them. One entry per record, not per token.
 * A lane here is one lane of one producer's attempt, so that a stranger's tokens never mix with the owner's.
 */
export class PendingTokens {
  readonly from: Producer;
  readonly lane: string;
  readonly #held: Held[] = [];

  constructor(from: Producer, lane: string) {
    this.from = from;
    this.lane = lane;
  }

  /** Raw sequence of the oldest record with tokens here; undefined when nothing is held. */
  get oldest(): number | undefined {
    return this.#held[0]?.seq;
  }

  push(held: Held): void {
    this.#held.push(held);
  }

  /** Takes the oldest `count` tokens: they end in a chunk that was made. 0 when the chunk is a piece of one token. */
  take(count: number): Taken {
    const first = this.#held[0]!;
    let last = first;
    let n = first.n - 1;
    let left = count;
    while (left > 0) {
      last = this.#held[0]!;
      const used = Math.min(left, last.count);
      left -= used;
      n = last.n + used - 1;
      if (used === last.count) this.#held.shift();
      else if (used > 0) this.#held[0] = { ...last, n: last.n + used, count: last.count - used, units: 0 };
    }
    return {
      first: first.seq,
      last: last.seq,
      n,
      units: this.#held[0]?.units ?? 0,
      firstTrace: first.trace,
      lastTrace: last.trace,
    };
  }
}

export function heldKey(from: Producer, lane: string): string {
  return `${from.id}\n${from.turn}.${from.attempt}\n${lane}`;
}
