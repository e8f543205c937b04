import type { AgentRecord, TaskAggregate, TextInput } from '@hopline/events';

/**
 * The ordinals of a producer's attempt that are known. Up to `n` only text can be new; up to `lastSeenOrdinal` nothing is. Text
 * in between may have been held by the previous owner when it died (half of a surrogate pair waits for its other half although a
 * later notice was stored): the lanes of the aggregate hold how much of it is folded.
 */
export type SeenOrdinals = {
  /** Last ordinal that was accepted, by this relay or a previous owner. */
  n: number;
  /** Last ordinal that this relay accepted; 0 before the first. */
  lastSeenOrdinal: number;
};

type SeenAttempt = SeenOrdinals & { turn: number; attempt: number };

const NOTHING: SeenOrdinals = { n: 0, lastSeenOrdinal: 0 };

/**
 * Decides by ordinal, never by text, which inputs of a producer are new: a record may be read again after a takeover, or stored
 * twice after the duplicate window. It runs ahead of the log by what the coalescer holds; after a load it starts from the
 * aggregate.
 */
export class OrdinalDeduplicator {
  readonly #producers = new Map<string, SeenAttempt>();

  constructor(aggregate: TaskAggregate | undefined) {
    for (const [id, { attempt, n }] of Object.entries(aggregate?.producers ?? {})) {
      this.#producers.set(id, { turn: aggregate!.turn, attempt, n, lastSeenOrdinal: 0 });
    }
  }

  /** Ordinals are contiguous. A gap means that inputs were removed (retention, a full stream) before a relay read them. */
  hasGapBefore(record: AgentRecord): boolean {
    const { id, turn, attempt } = record.from;
    const seen = this.#producers.get(id);
    if (seen === undefined || seen.lastSeenOrdinal === 0) return false;
    return seen.turn === turn && seen.attempt === attempt && record.n > seen.n + 1;
  }

  /** The known ordinals of the record's attempt, or `stale` when a later attempt or turn of the producer was seen. */
  lookUp(record: AgentRecord): SeenOrdinals | 'stale' {
    const { id, turn, attempt } = record.from;
    const seen = this.#producers.get(id);
    if (seen === undefined || turn > seen.turn || (turn === seen.turn && attempt > seen.attempt)) return NOTHING;
    if (turn < seen.turn || attempt < seen.attempt) return 'stale';
    return seen;
  }

  /** Remembers a record whose last ordinal is `last`; `before` is its result of `lookUp`. */
  record({ from: { id, turn, attempt } }: AgentRecord, last: number, before: SeenOrdinals): void {
    const lastSeenOrdinal = Math.max(before.lastSeenOrdinal, last);
    this.#producers.set(id, { turn, attempt, n: Math.max(before.n, last), lastSeenOrdinal });
  }
}

/**
 * How much of a text input is folded or was accepted before: whole tokens at its head, and UTF-16 units of the token after them.
 */
export type FoldedText = { tokens: number; units: number };

/** `firstN`: ordinal of the input's first token. */
export function alreadyFolded(
  record: AgentRecord,
  input: TextInput,
  firstN: number,
  { lastSeenOrdinal }: SeenOrdinals,
  aggregate: TaskAggregate | undefined,
): FoldedText {
  const lane = aggregate?.lanes[input.lane];
  const isCurrent =
    lane?.producer === record.from.id && lane.attempt === record.from.attempt && aggregate?.turn === record.from.turn;
  const folded = isCurrent ? lane.n : 0;
  const tokens = Math.min(input.tokens.length, Math.max(0, lastSeenOrdinal - firstN + 1, folded - firstN + 1));
  const isSplitHere = isCurrent && lastSeenOrdinal <= folded && firstN + tokens === folded + 1;
  return { tokens, units: isSplitHere ? (lane.splitOffset ?? 0) : 0 };
}
