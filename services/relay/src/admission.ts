import type { AgentRecord, TaskControl, TextInput } from '@hopline/events';

type Seen = { turn: number; attempt: number; n: number /** Spoken here, not only known from the log. */; heard: boolean };

/**
 * Which ordinals of a producer are new. A record may be read again after a takeover, or stored twice after the duplicate window:
 * ordinals decide, never the text (S0-22). In memory it runs ahead of the log by what the coalescer holds; after a load it starts from the control state.
 */
export class Admission {
  readonly #seen = new Map<string, Seen>();

  constructor(control: TaskControl | undefined) {
    for (const [id, { attempt, n }] of Object.entries(control?.producers ?? {})) {
      this.#seen.set(id, { turn: control!.turn, attempt, n, heard: false });
    }
  }

  /** Ordinals are contiguous: one that jumps says that inputs were removed (retention, a full stream) before a relay read them. */
  misses(record: AgentRecord): boolean {
    const { id, turn, attempt } = record.from;
    const seen = this.#seen.get(id);
    return seen?.heard === true && seen.turn === turn && seen.attempt === attempt && record.n > seen.n + 1;
  }

  /** Last ordinal already admitted of this record's attempt, or `stale` when a later attempt or turn of the producer has spoken. */
  before(record: AgentRecord): number | 'stale' {
    const { id, turn, attempt } = record.from;
    const seen = this.#seen.get(id);
    if (seen === undefined || turn > seen.turn || (turn === seen.turn && attempt > seen.attempt)) return 0;
    if (turn < seen.turn || attempt < seen.attempt) return 'stale';
    return seen.n;
  }

  /** Everything up to ordinal `n` of this record's attempt is admitted. */
  admit(record: AgentRecord, n: number): void {
    const { id, turn, attempt } = record.from;
    this.#seen.set(id, { turn, attempt, n, heard: true });
  }
}

/** How much of a text input is in the log already, or was admitted before: whole tokens at its head, and UTF-16 units of the token after them. */
export type Known = { tokens: number; units: number };

export function knownOf(
  record: AgentRecord,
  input: TextInput,
  firstN: number,
  admitted: number,
  control: TaskControl | undefined,
): Known {
  const lane = control?.lanes[input.lane];
  const current = lane?.producer === record.from.id && lane.attempt === record.from.attempt && control?.turn === record.from.turn;
  const folded = current ? lane.n : 0;
  const tokens = Math.min(input.tokens.length, Math.max(0, admitted - firstN + 1, folded - firstN + 1));
  const cutHere = current && admitted <= folded && firstN + tokens === folded + 1;
  return { tokens, units: cutHere ? (lane.cut ?? 0) : 0 };
}
