import type { AgentRecord, TaskAggregate, TextInput } from '@hopline/events';

type Seen = {
  turn: number;
  attempt: number;
  /** Last ordinal that was admitted, here or by an owner before. */
  n: number;
  /** Last ordinal that came in this relay's life; 0 before the first. */
  lastSeenOrdinal: number;
};

/**
 * What is known of a record's producer: up to `n` nothing but text can be new; up to `heard` nothing is. Between them lies text that an owner before may have held when it died:
 * half of a surrogate pair waits for its other half though a notice after it was stored. Of that the lanes know how much was folded.
 */
export type Admitted = { n: number; lastSeenOrdinal: number };

const NOTHING: Admitted = { n: 0, lastSeenOrdinal: 0 };

/**
 * Which ordinals of a producer are new. A record may be read again after a takeover, or stored twice after the duplicate window:
 * ordinals decide, never the text (S0-22). In memory it runs ahead of the log by what the coalescer holds; after a load it starts from the aggregate.
 */
export class OrdinalDeduplicator {
  readonly #seen = new Map<string, Seen>();

  constructor(aggregate: TaskAggregate | undefined) {
    for (const [id, { attempt, n }] of Object.entries(aggregate?.producers ?? {})) {
      this.#seen.set(id, { turn: aggregate!.turn, attempt, n, lastSeenOrdinal: 0 });
    }
  }

  /** Ordinals are contiguous: one that jumps says that inputs were removed (retention, a full stream) before a relay read them. */
  misses(record: AgentRecord): boolean {
    const { id, turn, attempt } = record.from;
    const seen = this.#seen.get(id);
    if (seen === undefined || seen.lastSeenOrdinal === 0) return false;
    return seen.turn === turn && seen.attempt === attempt && record.n > seen.n + 1;
  }

  /** What was admitted already of this record's attempt, or `stale` when a later attempt or turn of the producer has spoken. */
  before(record: AgentRecord): Admitted | 'stale' {
    const { id, turn, attempt } = record.from;
    const seen = this.#seen.get(id);
    if (seen === undefined || turn > seen.turn || (turn === seen.turn && attempt > seen.attempt)) return NOTHING;
    if (turn < seen.turn || attempt < seen.attempt) return 'stale';
    return seen;
  }

  /** The record is admitted, whose last ordinal is `last`. `before`: what was said of it. */
  admit(record: AgentRecord, last: number, before: Admitted): void {
    const { id, turn, attempt } = record.from;
    this.#seen.set(id, { turn, attempt, n: Math.max(before.n, last), lastSeenOrdinal: Math.max(before.lastSeenOrdinal, last) });
  }
}

/** How much of a text input is in the log already, or was admitted before: whole tokens at its head, and UTF-16 units of the token after them. */
export type Known = { tokens: number; units: number };

export function alreadyFolded(
  record: AgentRecord,
  input: TextInput,
  firstN: number,
  { lastSeenOrdinal: heard }: Admitted,
  aggregate: TaskAggregate | undefined,
): Known {
  const lane = aggregate?.lanes[input.lane];
  const current =
    lane?.producer === record.from.id && lane.attempt === record.from.attempt && aggregate?.turn === record.from.turn;
  const folded = current ? lane.n : 0;
  const tokens = Math.min(input.tokens.length, Math.max(0, heard - firstN + 1, folded - firstN + 1));
  const cutHere = current && heard <= folded && firstN + tokens === folded + 1;
  return { tokens, units: cutHere ? (lane.splitOffset ?? 0) : 0 };
}
