import { isTerminal } from '@hopline/a2a';
import {
  type Chunk,
  type Coalescer,
  type CoalesceSettings,
  close,
  closeAll,
  createCoalescer,
  flush,
  offer,
  tick,
  wakeAtMs,
} from '@hopline/coalesce';
import type { AgentInput, AgentRecord, Producer, TextInput } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import type { TextRun } from '@hopline/task';
import type { FoldedText } from './ordinal-deduplicator.ts';
import type { TextCutter } from './text-cutter.ts';

const NO_RUNS: readonly TextRun[] = [];

/** The coalescer of one task: tokens in, runs out, each run with the provenance of its tokens. */
export class CoalescedText implements TextCutter {
  readonly #coalescer: Coalescer;
  readonly #pending = new Map<string, PendingTokens>();

  constructor(settings: CoalesceSettings) {
    this.#coalescer = createCoalescer(settings);
  }

  get oldestSeq(): number | undefined {
    let oldest: number | undefined;
    for (const { oldestSeq } of this.#pending.values()) {
      if (oldestSeq !== undefined && (oldest === undefined || oldestSeq < oldest)) oldest = oldestSeq;
    }
    return oldest;
  }

  get wakeAt(): number | undefined {
    return wakeAtMs(this.#coalescer);
  }

  offer(
    record: AgentRecord,
    input: TextInput,
    firstN: number,
    folded: FoldedText,
    stored: StoredInput,
    now: number,
  ): readonly TextRun[] {
    const { tokens: skip, units } = folded;
    if (skip === input.tokens.length) return NO_RUNS;
    const key = attemptLaneKey(record.from, input.lane);
    let pending = this.#pending.get(key);
    if (pending === undefined) {
      pending = new PendingTokens(record.from, input.lane);
      this.#pending.set(key, pending);
    }
    pending.push({
      seq: stored.seq,
      n: firstN + skip,
      count: input.tokens.length - skip,
      units,
      trace: stored.trace?.traceparent,
      heldMs: record.heldMs ?? 0,
    });
    const isHeld = record.heldMs !== undefined;
    let runs: TextRun[] | undefined;
    for (let index = skip; index < input.tokens.length; index++) {
      const token = input.tokens[index]!;
      const text = index === skip && units > 0 ? token.slice(units) : token;
      const atMs = record.at + (input.dt?.[index] ?? 0);
      for (const chunk of offer(this.#coalescer, key, { text, atMs }, now, isHeld)) {
        runs ??= [];
        runs.push(this.#runOf(chunk));
      }
    }
    return runs ?? NO_RUNS;
  }

  flushFor(from: Producer, input: Exclude<AgentInput, TextInput>, now: number): readonly TextRun[] {
    const chunks: Chunk[] = [];
    for (const { from: own, lane } of this.#pending.values()) {
      // Also flushes half a surrogate pair of an earlier attempt, because its other half never comes from the next attempt.
      if (isEarlierAttempt(own, from)) chunks.push(...close(this.#coalescer, attemptLaneKey(own, lane), now));
    }
    if (input.kind === 'close') chunks.push(...close(this.#coalescer, attemptLaneKey(from, input.lane), now));
    const isEnd = input.kind === 'status' && isTerminal(input.state);
    chunks.push(...(isEnd ? closeAll(this.#coalescer, now) : flush(this.#coalescer, now)));
    return this.#runsOf(chunks);
  }

  flush(now: number): readonly TextRun[] {
    return this.#runsOf(flush(this.#coalescer, now));
  }

  closeAll(now: number): readonly TextRun[] {
    return this.#runsOf(closeAll(this.#coalescer, now));
  }

  /**
   * No text is held for a task that is over, because the other half of a surrogate pair may never come, and held text holds back the
   * shard's checkpoint.
   */
  releaseDue(now: number, isOver: boolean): readonly TextRun[] {
    return this.#runsOf(isOver ? closeAll(this.#coalescer, now) : tick(this.#coalescer, now));
  }

  #runsOf(chunks: readonly Chunk[]): readonly TextRun[] {
    return chunks.length === 0 ? NO_RUNS : chunks.map(chunk => this.#runOf(chunk));
  }

  #runOf(chunk: Chunk): TextRun {
    const pending = this.#pending.get(chunk.lane)!;
    const taken = pending.take(chunk.count, chunk.lastOffset !== undefined);
    if (pending.oldestSeq === undefined) this.#pending.delete(chunk.lane);
    return runOf(chunk, pending, taken);
  }
}

function runOf(chunk: Chunk, { from, lane }: PendingTokens, taken: TakenTokens): TextRun {
  const { firstTrace, lastTrace, firstSeq, lastSeq, n, units, heldMs } = taken;
  return {
    kind: 'run',
    from,
    lane,
    text: chunk.text,
    last: false,
    n,
    chunk: {
      firstSeq,
      lastSeq,
      count: chunk.count,
      n,
      ...(chunk.lastOffset !== undefined && { splitOffset: chunk.lastOffset + units }),
      reason: chunk.reason,
      heldMs: Math.round(chunk.heldMs + heldMs),
      firstAt: chunk.firstAtMs,
      lastAt: chunk.lastAtMs,
      ...(firstTrace && { firstTrace }),
      ...(lastTrace && { lastTrace }),
    },
  };
}

/** The tokens of one input record, or some of them, that the coalescer holds. */
type PendingRecord = {
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
type TakenTokens = {
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
 * Provenance of the tokens held for one lane of one producer's attempt. It is kept by producer, so that tokens of a producer that does not
 * own the lane stay separate. The coalescer only counts tokens. One entry per record, not per token.
 */
class PendingTokens {
  readonly from: Producer;
  readonly lane: string;
  readonly #runs: PendingRecord[] = [];

  constructor(from: Producer, lane: string) {
    this.from = from;
    this.lane = lane;
  }

  /** Input sequence of the oldest record with tokens here; undefined when none is held. */
  get oldestSeq(): number | undefined {
    return this.#runs[0]?.seq;
  }

  push(run: PendingRecord): void {
    this.#runs.push(run);
  }

  /**
   * Takes the oldest `count` tokens, which end in one chunk. `count` is 0 if the chunk is a piece of one token. `isSplit`: the chunk also
   * has the beginning of the next token. `n` is then the ordinal before that token, which may belong to a non-text input between the two
   * tokens.
   */
  take(count: number, isSplit: boolean): TakenTokens {
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
      n: isSplit ? this.#runs[0]!.n - 1 : n,
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
