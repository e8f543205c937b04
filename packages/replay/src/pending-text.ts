import type { AgentRecord, ChunkProvenance, Producer, TextInput } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import type { TextRun } from '@hopline/task';

type PendingToken = { n: number; seq: number; at: number; text: string; trace: string | undefined };

/** The members of a chunk that only the relay's clock determined. */
type Timing = Pick<ChunkProvenance, 'reason' | 'heldMs' | 'waitMs'>;

/** Tokens of one producer's attempt in one lane that are not yet in a chunk. */
export class PendingText {
  readonly from: Producer;
  readonly lane: string;
  readonly #tokens: PendingToken[] = [];
  /** UTF-16 units of the first token that are already in a chunk. */
  #offset = 0;

  constructor(from: Producer, lane: string) {
    this.from = from;
    this.lane = lane;
  }

  get isEmpty(): boolean {
    return this.#tokens.length === 0;
  }

  /** Input sequence of the oldest token. */
  get firstSeq(): number {
    return this.#tokens[0]?.seq ?? 0;
  }

  /** `firstN`: ordinal of the first token of the input. The first `skip` tokens are already known. */
  push(record: AgentRecord, { tokens, dt }: TextInput, firstN: number, skip: number, { seq, trace }: StoredInput): void {
    for (let index = skip; index < tokens.length; index += 1) {
      const at = record.at + (dt?.[index] ?? 0);
      this.#tokens.push({ n: firstN + index, seq, at, text: tokens[index]!, trace: trace?.traceparent });
    }
  }

  /** Whether the chunk ends within the tokens at hand. */
  holds({ n, splitOffset }: Pick<ChunkProvenance, 'n' | 'splitOffset'>): boolean {
    const last = this.#tokens.at(-1)?.n ?? 0;
    return splitOffset === undefined ? last >= n : last > n;
  }

  /** Takes the text of a stored chunk: the same tokens, cut at the same place. */
  takeChunk(stored: ChunkProvenance): TextRun {
    const after = this.#tokens.findIndex(({ n }) => n > stored.n);
    let count = after < 0 ? this.#tokens.length : after;
    // Tokens without text in front of half a pair may have been sent without it and have been rejected. Every chunk contains at least a
    // part of a token.
    const atLeast = stored.splitOffset === undefined ? Math.max(1, stored.count) : stored.count;
    for (; count > atLeast && this.#tokens[0]?.text === ''; count -= 1) this.#tokens.shift();
    return this.#take(count, stored.splitOffset, stored);
  }

  /** All text that may be sent before a non-text input. Without `isClosed`, half a surrogate pair at its end stays. */
  takeAll(isClosed: boolean): TextRun | undefined {
    const all = this.#tokens.length;
    // The newest token with text, which is the only one that a cut can split.
    const tail = this.#tokens.findLastIndex(({ text }) => text.length > 0);
    const text = this.#tokens[tail]?.text ?? '';
    const timing = { reason: 'boundary', heldMs: 0, waitMs: 0 };
    if (isClosed || !/[\ud800-\udbff]$/.test(text)) return all === 0 ? undefined : this.#take(all, undefined, timing);
    const cut = text.length - 1;
    const left = tail === 0 ? this.#offset : 0;
    if (cut > left) return this.#take(tail, cut, timing);
    // Tokens without text stay with the half that follows them.
    const end = this.#tokens.slice(0, tail).findLastIndex(token => token.text.length > 0) + 1;
    return end > 0 ? this.#take(end, undefined, timing) : undefined;
  }

  #take(whole: number, split: number | undefined, timing: Timing & Partial<ChunkProvenance>): TextRun {
    const first = this.#tokens[0];
    const taken = this.#tokens.splice(0, whole);
    const partial = split === undefined ? undefined : this.#tokens[0];
    const text = `${taken.map(token => token.text).join('')}${partial?.text.slice(0, split) ?? ''}`.slice(this.#offset);
    const last = taken.at(-1)?.n ?? (first?.n ?? 1) - 1;
    // Logs from before 2026-11-30 name the last whole token, even if an input that is not text is between it and the split one.
    const n = partial === undefined || timing.n === last ? last : partial.n - 1;
    const newest = partial ?? taken.at(-1) ?? first;
    // Runs that were merged in the queue name the record of the split token. A single run names the record of the last whole token.
    const lastSeqs = [taken.at(-1)?.seq ?? newest?.seq ?? 0, newest?.seq ?? 0];
    const traces = [...taken, ...(partial === undefined ? [] : [partial])].map(token => token.trace);
    // A merged run without a trace takes that of the next run.
    const firstTrace = traces[0] ?? (traces.includes(timing.firstTrace) ? timing.firstTrace : undefined);
    const lastTraces = [taken.at(-1)?.trace, newest?.trace];
    const lastTrace = lastTraces.includes(timing.lastTrace) ? timing.lastTrace : lastTraces[0];
    const chunk: ChunkProvenance = {
      firstSeq: first?.seq ?? 0,
      lastSeq: lastSeqs.includes(timing.lastSeq ?? 0) ? timing.lastSeq! : lastSeqs[0]!,
      count: taken.length,
      n,
      ...(split !== undefined && { splitOffset: split }),
      reason: timing.reason,
      heldMs: timing.heldMs,
      firstAt: first?.at ?? 0,
      lastAt: newest?.at ?? 0,
      ...(firstTrace !== undefined && { firstTrace }),
      ...(lastTrace !== undefined && { lastTrace }),
      ...(timing.waitMs !== undefined && { waitMs: timing.waitMs }),
    };
    this.#offset = split ?? 0;
    return { kind: 'run', from: this.from, lane: this.lane, text, last: false, n, chunk };
  }
}
