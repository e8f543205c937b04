import type { Producer } from '@hopline/events';

/** Tokens of one input record that the coalescer holds, some or all of them. */
type PendingRun = {
  seq: number;
  n: number;
  count: number;
  /** UTF-16 units of the first token that were folded before the record was read again. */
  units: number;
  trace: string | undefined;
  /** How long the producer held the oldest token of the record. */
  heldMs: number;
};

/** Provenance of the tokens in one chunk. */
export type TakenTokens = {
  firstSeq: number;
  lastSeq: number;
  n: number;
  units: number;
  firstTrace: string | undefined;
  lastTrace: string | undefined;
  /** How long the producer held the oldest token. */
  heldMs: number;
};

/**
 * Provenance of the tokens held for one lane of one producer's attempt, so that tokens of a producer that does not own the lane stay
 * separate. The coalescer only counts tokens. One entry per record, not per token.
 */
export class PendingTokens {
  readonly from: Producer;
  readonly lane: string;
  readonly #runs: PendingRun[] = [];

  constructor(from: Producer, lane: string) {
    this.from = from;
    this.lane = lane;
  }

  /** Input sequence of the oldest record with tokens here; undefined when none is held. */
  get oldestSeq(): number | undefined {
    return this.#runs[0]?.seq;
  }

  push(run: PendingRun): void {
    this.#runs.push(run);
  }

  /** Takes the oldest `count` tokens, which end in one chunk. `count` is 0 if the chunk is a piece of one token. */
  take(count: number): TakenTokens {
    const first = this.#runs[0]!;
    let last = first;
    let n = first.n - 1;
    let left = count;
    while (left > 0) {
      last = this.#runs[0]!;
      const used = Math.min(left, last.count);
      left -= used;
      n = last.n + used - 1;
      if (used === last.count) this.#runs.shift();
      else if (used > 0) this.#runs[0] = { ...last, n: last.n + used, count: last.count - used, units: 0 };
    }
    return {
      firstSeq: first.seq,
      lastSeq: last.seq,
      n,
      units: this.#runs[0]?.units ?? 0,
      firstTrace: first.trace,
      lastTrace: last.trace,
      heldMs: first.heldMs,
    };
  }
}

type Attempt = Pick<Producer, 'id' | 'turn' | 'attempt'>;

/** Key of a producer's attempt in a lane. */
export function attemptLaneKey(from: Attempt, lane: string): string {
  return `${from.id}\n${from.turn}.${from.attempt}\n${lane}`;
}

/** Whether `one` is an earlier attempt of the same producer as `from`. */
export function isEarlierAttempt({ id, turn, attempt }: Attempt, from: Attempt): boolean {
  return id === from.id && (turn < from.turn || (turn === from.turn && attempt < from.attempt));
}
