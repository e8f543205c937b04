import { isTerminal } from '@hopline/a2a';
import type { AgentInput, AgentRecord, Producer, TextInput } from '@hopline/events';
import { attemptLaneKey, type FoldedText, isEarlierAttempt, type TextCutter } from '@hopline/fold';
import type { StoredInput } from '@hopline/log';
import type { TextRun } from '@hopline/task';
import { PendingText } from './pending-text.ts';
import type { RecordedDecisions } from './recorded-decisions.ts';

/**
 * Cuts text at the ends of the stored chunks. Text that is in no stored chunk is released before the next input, where either the rules
 * reject it or the facts differ. The caller decides each run as soon as it takes it, so the next stored fact is known before the next run.
 */
export class RecordedText implements TextCutter {
  readonly wakeAt = undefined;
  /** Undefined, because a replay stores nothing for which text would have to wait. */
  readonly oldestSeq = undefined;
  readonly #facts: RecordedDecisions;
  readonly #foldedSeq: number;
  readonly #pending = new Map<string, PendingText>();

  /** `foldedSeq`: all inputs up to this sequence are stored or were rejected. */
  constructor(facts: RecordedDecisions, foldedSeq: number) {
    this.#facts = facts;
    this.#foldedSeq = foldedSeq;
  }

  offer(
    record: AgentRecord,
    input: TextInput,
    firstN: number,
    { tokens: skip }: FoldedText,
    stored: StoredInput,
  ): readonly TextRun[] {
    if (skip === input.tokens.length) return [];
    const key = attemptLaneKey(record.from, input.lane);
    const pending = this.#pending.get(key) ?? new PendingText(record.from, input.lane);
    this.#pending.set(key, pending);
    pending.push(record, input, firstN, skip, stored);
    return [];
  }

  *flushFor(from: Producer, input: Exclude<AgentInput, TextInput>): Generator<TextRun, void> {
    const closing = input.kind === 'close' ? this.#pending.get(attemptLaneKey(from, input.lane)) : undefined;
    // If a run contains the close of its lane, text of other lanes may have been merged across that close.
    if (yield* this.#takeChunks(closing)) return;
    if (closing !== undefined && !closing.isEmpty) return yield* this.#takeAll(closing, true);
    // When its attempt or task has ended, half a surrogate pair no longer waits for its other half.
    const isEnd = input.kind === 'status' && isTerminal(input.state);
    for (const pending of this.#pending.values()) yield* this.#takeAll(pending, isEnd || isEarlierAttempt(pending.from, from));
  }

  *flush(): Generator<TextRun, void> {
    yield* this.#takeChunks(undefined);
  }

  *closeAll(): Generator<TextRun, void> {
    yield* this.#takeChunks(undefined);
    for (const pending of this.#pending.values()) yield* this.#takeAll(pending, true);
  }

  /** After the last input, every input up to the folded sequence must be in a chunk. */
  *releaseDue(_now: number, isOver: boolean): Generator<TextRun, void> {
    if (!isOver) yield* this.#takeChunks('not closed');
    else {
      yield* this.#takeChunks(undefined);
      for (const pending of this.#pending.values()) if (pending.firstSeq <= this.#foldedSeq) yield* this.#takeAll(pending, false);
    }
  }

  /**
   * Takes the stored chunks whose tokens have all been read. A chunk that closes its lane is taken only if `closing` is its text. It is
   * then the last one taken, and the result is true. `not closed`: this input closes nothing, so a chunk after which another input may
   * close the lane also has to wait.
   */
  *#takeChunks(closing: PendingText | 'not closed' | undefined): Generator<TextRun, boolean> {
    for (let chunk = this.#facts.nextChunk; chunk !== undefined; chunk = this.#facts.nextChunk) {
      const from = { id: chunk.producer, turn: this.#facts.aggregate?.turn ?? 0, attempt: chunk.attempt };
      const pending = this.#pending.get(attemptLaneKey(from, chunk.lane));
      if (pending?.holds(chunk.chunk) !== true) return false;
      const isLast = chunk.event.artifactUpdate.lastChunk === true;
      const isClosedNext = this.#facts.isNextChunkClosed;
      if (isLast ? pending !== closing : isClosedNext && closing === 'not closed') return false;
      const run = pending.takeChunk(chunk.chunk);
      const last = { ...run, last: true };
      // A run that closes its lane makes two facts if the first chunk must not be the last one; otherwise the close input itself closes the
      // lane.
      const isClosing =
        pending === closing && pending.isEmpty && (isLast || (isClosedNext && this.#facts.decide(last).length > 1));
      yield isClosing ? last : run;
      this.#facts.assertChunkDecided(chunk);
      if (isClosing) return true;
    }
    return false;
  }

  *#takeAll(pending: PendingText, isClosed: boolean): Generator<TextRun, void> {
    const run = pending.takeAll(isClosed);
    if (pending.isEmpty) this.#pending.delete(attemptLaneKey(pending.from, pending.lane));
    if (run !== undefined) yield run;
  }
}
