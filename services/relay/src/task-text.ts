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
import type { Known } from './ordinal-deduplicator.ts';
import { heldKey, PendingTokens, type Taken } from './pending-tokens.ts';

export type Chunk = ChunkOf<undefined>;

/** The text of one task on its way through the coalescer: tokens in, runs out, each run with the records it came from. */
export class TaskText {
  readonly #coalescer: Coalescer<undefined>;
  readonly #held = new Map<string, PendingTokens>();
  readonly #emit: (run: TextRun, chunk: Chunk) => void;

  constructor(settings: CoalesceSettings, emit: (run: TextRun, chunk: Chunk) => void) {
    this.#coalescer = createCoalescer(settings);
    this.#emit = emit;
  }

  /** Raw sequence of the oldest record with text that is held; undefined when none is. */
  get oldest(): number | undefined {
    let oldest: number | undefined;
    for (const held of this.#held.values()) {
      if (held.oldest !== undefined && (oldest === undefined || held.oldest < oldest)) oldest = held.oldest;
    }
    return oldest;
  }

  /** When `due` must be called, epoch milliseconds; undefined when no time releases anything. */
  get wakeAt(): number | undefined {
    return wakeAtMs(this.#coalescer);
  }

  /** Takes the tokens of a text input that are not in the log yet. `firstN`: ordinal of its first token. */
  offer(record: AgentRecord, input: TextInput, firstN: number, known: Known, stored: StoredInput, now: number): void {
    const { tokens: skip, units } = known;
    if (skip === input.tokens.length) return;
    const key = heldKey(record.from, input.lane);
    let held = this.#held.get(key);
    if (held === undefined) {
      held = new PendingTokens(record.from, input.lane);
      this.#held.set(key, held);
    }
    held.push({ seq: stored.seq, n: firstN + skip, count: input.tokens.length - skip, units, trace: stored.trace?.traceparent });
    for (let index = skip; index < input.tokens.length; index++) {
      const token = input.tokens[index]!;
      const text = index === skip && units > 0 ? token.slice(units) : token;
      const atMs = record.at + (input.dt?.[index] ?? 0);
      this.#send(offer(this.#coalescer, key, { text, atMs, ref: undefined }, now));
    }
  }

  /** What is held goes out before anything that is not text: order is kept, and a notice never waits behind a window. */
  flushFor(from: Producer, input: Exclude<AgentInput, TextInput>, now: number): void {
    if (input.kind === 'close') this.#send(close(this.#coalescer, heldKey(from, input.lane), now));
    const ends = input.kind === 'status' && isTerminal(input.state);
    this.#send(ends ? closeAll(this.#coalescer, now) : flush(this.#coalescer, now));
  }

  /** A message or a cancel ends what is open: half a surrogate pair does not wait for its other half. */
  closeAll(now: number): void {
    this.#send(closeAll(this.#coalescer, now));
  }

  /**
   * Lets go what is due. Call it once after all tokens that are there were offered, and when `wakeAt` has come. Of a task that is over nothing waits: the other half of a pair may never come, and what is
   * held holds back the shard's checkpoint.
   */
  due(now: number, isOver: boolean): void {
    this.#send(isOver ? closeAll(this.#coalescer, now) : tick(this.#coalescer, now));
  }

  #send(chunks: readonly Chunk[]): void {
    for (const chunk of chunks) {
      const held = this.#held.get(chunk.lane)!;
      const taken = held.take(chunk.count);
      if (held.oldest === undefined) this.#held.delete(chunk.lane);
      this.#emit(runOf(chunk, held, taken), chunk);
    }
  }
}

function runOf(chunk: Chunk, { from, lane }: PendingTokens, taken: Taken): TextRun {
  const { firstTrace, lastTrace, first, last, n, units } = taken;
  return {
    kind: 'run',
    from,
    lane,
    text: chunk.text,
    last: false,
    n,
    chunk: {
      firstSeq: first,
      lastSeq: last,
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
