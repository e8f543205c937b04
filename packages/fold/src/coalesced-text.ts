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
import { attemptLaneKey, isEarlierAttempt, PendingTokens, type TakenTokens } from './pending-tokens.ts';
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
      // Flushes half a surrogate pair of an earlier attempt too: its other half never comes from the next attempt.
      if (isEarlierAttempt(own, from)) chunks.push(...close(this.#coalescer, attemptLaneKey(own, lane), now));
    }
    if (input.kind === 'close') chunks.push(...close(this.#coalescer, attemptLaneKey(from, input.lane), now));
    const isEnd = input.kind === 'status' && isTerminal(input.state);
    chunks.push(...(isEnd ? closeAll(this.#coalescer, now) : flush(this.#coalescer, now)));
    return this.#runsOf(chunks);
  }

  closeAll(now: number): readonly TextRun[] {
    return this.#runsOf(closeAll(this.#coalescer, now));
  }

  /**
   * A task that is over holds no text: the other half of a surrogate pair may never come, and held text holds back the shard's
   * checkpoint.
   */
  releaseDue(now: number, isOver: boolean): readonly TextRun[] {
    return this.#runsOf(isOver ? closeAll(this.#coalescer, now) : tick(this.#coalescer, now));
  }

  #runsOf(chunks: readonly Chunk[]): readonly TextRun[] {
    return chunks.length === 0 ? NO_RUNS : chunks.map(chunk => this.#runOf(chunk));
  }

  #runOf(chunk: Chunk): TextRun {
    const pending = this.#pending.get(chunk.lane)!;
    const taken = pending.take(chunk.count);
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
