import {
  type AgentRecord,
  entryOf,
  isSameItem,
  type Producer,
  type ProducerState,
  type TaskAggregate,
  type TextInput,
} from '@hopline/events';
import { isKnownProducer } from '@hopline/task';

/**
 * The known ordinals of a producer's run. Up to `lastSeenOrdinal` nothing is new, and up to `n` only text can be new, because the previous
 * owner may have held text when it died: half of a surrogate pair waits for its other half even after a later notice is stored. The lanes
 * of the aggregate show how much of that text is folded.
 */
type SeenOrdinals = {
  /** Last ordinal that was accepted, by this relay or a previous owner. */
  n: number;
  /** Last ordinal that this relay accepted; 0 before the first. */
  lastSeenOrdinal: number;
};

/** A run: the inputs of one attempt at one work item. */
type Attempt = Pick<Producer, 'turn' | 'item' | 'attempt'>;

/** `nextN`: the highest ordinal with which the next record may begin. Undefined if a previous owner did not store it. */
type SeenRun = SeenOrdinals & Attempt & { nextN: number | undefined };

/** Last ordinal of a record that was accepted, and the raw sequence of the record. */
type AcceptedRecord = { seq: number; id: string; run: Attempt; lastN: number };

const NOTHING: SeenOrdinals = { n: 0, lastSeenOrdinal: 0 };
/** Maximum number of accepted records that are kept separately until an append covers them. Beyond this number they are merged. */
const UNMERGED_MAX = 1_024;

/**
 * Decides by ordinal, never by text, which inputs of a producer are new: a record may be read again after a takeover, or stored twice after
 * the duplicate window. It is ahead of the log by the text that the coalescer holds. After a task is loaded, it starts from the aggregate.
 */
export class OrdinalDeduplicator {
  readonly #producers = new Map<string, SeenRun>();
  /** Records that are not covered by `#covered`, in the order of the log. */
  #accepted: AcceptedRecord[] = [];
  /** The newest covered record of each producer. */
  readonly #covered = new Map<string, AcceptedRecord>();
  #oldestUnstoredSeq: number | undefined;

  constructor(aggregate: TaskAggregate | undefined) {
    for (const [id, { item, attempt, n, lastN }] of Object.entries(aggregate?.producers ?? {})) {
      const nextN = lastN === undefined ? undefined : lastN + 1;
      const run = { turn: aggregate!.turn, attempt, ...(item !== undefined && { item }) };
      this.#producers.set(id, { ...run, n, lastSeenOrdinal: 0, nextN });
    }
  }

  /**
   * Ordinals are contiguous and begin with 1. A gap means that inputs were removed (retention, a full stream) before a relay read them,
   * possibly while no relay had the task in memory.
   */
  hasGapBefore(record: AgentRecord): boolean {
    const seen = this.#producers.get(record.from.id);
    const nextN = seen === undefined || isLaterRun(record.from, seen) ? 1 : seen.nextN;
    return nextN !== undefined && record.n > nextN;
  }

  /**
   * The known ordinals of the record's run, or why the record is rejected. `stale`: a later attempt or turn of the producer was seen.
   * `other item`: another work item of the same turn has written first.
   */
  lookUp(record: AgentRecord): SeenOrdinals | 'stale' | 'other item' {
    const { id, turn, attempt } = record.from;
    const seen = this.#producers.get(id);
    if (seen === undefined || turn > seen.turn) return NOTHING;
    if (turn < seen.turn) return 'stale';
    if (!isSameItem(seen, record.from)) return 'other item';
    if (attempt > seen.attempt) return NOTHING;
    return attempt < seen.attempt ? 'stale' : seen;
  }

  /** Remembers a record whose last ordinal is `last`. `before`: the result of `lookUp` for this record. */
  record({ from }: AgentRecord, last: number, before: SeenOrdinals, seq: number): void {
    const { id, turn, item, attempt } = from;
    const run = { turn, attempt, ...(item !== undefined && { item }) };
    const seen = this.#producers.get(id);
    // A repeated record must not lower the ordinal.
    const nextN = Math.max(last + 1, seen === undefined || isLaterRun(from, seen) ? 1 : (seen.nextN ?? 1));
    const lastSeenOrdinal = Math.max(before.lastSeenOrdinal, last);
    this.#producers.set(id, { ...run, n: Math.max(before.n, last), lastSeenOrdinal, nextN });
    this.#accepted.push({ seq, id, run, lastN: nextN - 1 });
    this.#oldestUnstoredSeq ??= seq;
  }

  /**
   * Raw sequence of the oldest accepted record whose ordinal is in no stored aggregate, because the record caused no fact. A relay that
   * starts reading after it would see a gap before the producer's next record.
   */
  get oldestUnstoredSeq(): number | undefined {
    return this.#oldestUnstoredSeq;
  }

  /** Must be called after an aggregate that `withLastOrdinals` returned has been stored. */
  stored(foldedSeq: number): void {
    const isMerged = [...this.#covered.values()].some(({ seq }) => seq > foldedSeq);
    this.#oldestUnstoredSeq = isMerged ? foldedSeq + 1 : this.#accepted.find(({ seq }) => seq > foldedSeq)?.seq;
  }

  /** Bounds memory, because records up to `foldedSeq` need not be kept separately. */
  compact(foldedSeq: number): void {
    if (this.#accepted.length > UNMERGED_MAX) this.#cover(foldedSeq);
  }

  /** The aggregate with the last ordinal of each producer in the records up to `foldedSeq`. */
  withLastOrdinals(aggregate: TaskAggregate, foldedSeq: number): TaskAggregate {
    this.#cover(foldedSeq);
    const changed: [string, ProducerState][] = [];
    for (const { id, run, lastN } of this.#covered.values()) {
      if (run.turn !== aggregate.turn || !isKnownProducer(aggregate, id)) continue;
      const { turn: _turn, ...producer } = run;
      const known = entryOf(aggregate.producers, id);
      // Only a part of the later attempt's first record is folded.
      if (known !== undefined && known.attempt > producer.attempt) continue;
      changed.push([id, { ...producer, n: known?.attempt === producer.attempt ? known.n : 0, lastN }]);
    }
    // An assignment to `__proto__` would add no entry.
    const producers = { ...aggregate.producers, ...Object.fromEntries(changed) };
    return { ...aggregate, producers, lastNSeq: foldedSeq };
  }

  #cover(foldedSeq: number): void {
    const count = this.#accepted.findIndex(({ seq }) => seq > foldedSeq);
    const covered = this.#accepted.splice(0, count < 0 ? this.#accepted.length : count);
    for (const accepted of covered) this.#covered.set(accepted.id, accepted);
  }
}

/** The aggregate without outdated last ordinals. An earlier version kept them unchanged while it folded further records. */
export function withoutStaleOrdinals(aggregate: TaskAggregate): TaskAggregate {
  if (aggregate.lastNSeq === aggregate.foldedSeq) return aggregate;
  const kept = Object.entries(aggregate.producers ?? {}).map(([id, { lastN: _lastN, ...producer }]) => [id, producer] as const);
  return { ...aggregate, producers: Object.fromEntries(kept) };
}

function isLaterRun(one: Attempt, other: Attempt): boolean {
  return one.turn > other.turn || (one.turn === other.turn && one.attempt > other.attempt);
}

/** How much of a text input has already been folded or accepted: whole tokens at its beginning, and UTF-16 units of the next token. */
export type FoldedText = { tokens: number; units: number };

/** `firstN`: ordinal of the input's first token. */
export function alreadyFolded(
  record: AgentRecord,
  input: TextInput,
  firstN: number,
  { lastSeenOrdinal }: SeenOrdinals,
  aggregate: TaskAggregate | undefined,
): FoldedText {
  const lane = aggregate && entryOf(aggregate.lanes, input.lane);
  const isCurrent =
    lane?.producer === record.from.id && lane.attempt === record.from.attempt && aggregate?.turn === record.from.turn;
  const folded = isCurrent ? lane.n : 0;
  const tokens = Math.min(input.tokens.length, Math.max(0, lastSeenOrdinal - firstN + 1, folded - firstN + 1));
  const isSplitHere = isCurrent && lastSeenOrdinal <= folded && firstN + tokens === folded + 1;
  return { tokens, units: isSplitHere ? (lane.splitOffset ?? 0) : 0 };
}
