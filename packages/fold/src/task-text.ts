import { isTerminal } from '@hopline/a2a';
import {
  type Chunk as ChunkOf,
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
import { attemptLaneKey, PendingTokens, type TakenTokens } from './pending-tokens.ts';

type Chunk = ChunkOf<undefined>;

/** The coalescer of one task: tokens in, runs out, each run with the provenance of its tokens. */
export class TaskText {
  readonly #coalescer: Coalescer<undefined>;
  readonly #pending = new Map<string, PendingTokens>();
  readonly #emit: (run: TextRun) => void;

  constructor(settings: CoalesceSettings, emit: (run: TextRun) => void) {
    this.#coalescer = createCoalescer(settings);
    this.#emit = emit;
  }

  /** Input sequence of the oldest record with held text; undefined when none is held. */
  get oldestSeq(): number | undefined {
    let oldest: number | undefined;
    for (const { oldestSeq } of this.#pending.values()) {
      if (oldestSeq !== undefined && (oldest === undefined || oldestSeq < oldest)) oldest = oldestSeq;
    }
    return oldest;
  }

  /** When `releaseDue` must be called, on the clock of `offer`; undefined while no text waits for a time. */
  get wakeAt(): number | undefined {
    return wakeAtMs(this.#coalescer);
  }

  /** Offers the tokens of a text input that are not folded yet. `firstN`: ordinal of its first token. */
  offer(record: AgentRecord, input: TextInput, firstN: number, folded: FoldedText, stored: StoredInput, now: number): void {
    const { tokens: skip, units } = folded;
    if (skip === input.tokens.length) return;
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
    });
    for (let index = skip; index < input.tokens.length; index++) {
      const token = input.tokens[index]!;
      const text = index === skip && units > 0 ? token.slice(units) : token;
      const atMs = record.at + (input.dt?.[index] ?? 0);
      this.#emitRuns(offer(this.#coalescer, key, { text, atMs, ref: undefined }, now));
    }
  }

  /** Releases held text before an input that is not text: order is kept, and a notice never waits for the end of a hold. */
  flushFor(from: Producer, input: Exclude<AgentInput, TextInput>, now: number): void {
    for (const pending of [...this.#pending.values()]) {
      // The other half of a surrogate pair does not come from the next attempt.
      if (isEarlierAttempt(pending.from, from))
        this.#emitRuns(close(this.#coalescer, attemptLaneKey(pending.from, pending.lane), now));
    }
    if (input.kind === 'close') this.#emitRuns(close(this.#coalescer, attemptLaneKey(from, input.lane), now));
    const isEnd = input.kind === 'status' && isTerminal(input.state);
    this.#emitRuns(isEnd ? closeAll(this.#coalescer, now) : flush(this.#coalescer, now));
  }

  /** Releases all text, half of a surrogate pair included: a message or a cancel ends what is open. */
  closeAll(now: number): void {
    this.#emitRuns(closeAll(this.#coalescer, now));
  }

  /**
   * Releases text whose hold time is over. To be called after all available tokens were offered, and at `wakeAt`. A task that is
   * over holds no text: the other half of a surrogate pair may never come, and held text holds back the shard's checkpoint.
   */
  releaseDue(now: number, isOver: boolean): void {
    this.#emitRuns(isOver ? closeAll(this.#coalescer, now) : tick(this.#coalescer, now));
  }

  #emitRuns(chunks: readonly Chunk[]): void {
    for (const chunk of chunks) {
      const pending = this.#pending.get(chunk.lane)!;
      const taken = pending.take(chunk.count);
      if (pending.oldestSeq === undefined) this.#pending.delete(chunk.lane);
      this.#emit(runOf(chunk, pending, taken));
    }
  }
}

function isEarlierAttempt({ id, turn, attempt }: Producer, from: Producer): boolean {
  return id === from.id && (turn < from.turn || (turn === from.turn && attempt < from.attempt));
}

function runOf(chunk: Chunk, { from, lane }: PendingTokens, taken: TakenTokens): TextRun {
  const { firstTrace, lastTrace, firstSeq, lastSeq, n, units } = taken;
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
      heldMs: Math.round(chunk.heldMs),
      firstAt: chunk.firstAtMs,
      lastAt: chunk.lastAtMs,
      ...(firstTrace && { firstTrace }),
      ...(lastTrace && { lastTrace }),
    },
  };
}
