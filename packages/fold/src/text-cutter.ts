import type { AgentInput, AgentRecord, Producer, TextInput } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import type { TextRun } from '@hopline/task';
import type { FoldedText } from './ordinal-deduplicator.ts';

/**
 * Cuts the text of one task into runs. A relay cuts by the clock of its coalescer, and a replay cuts at the ends of the stored chunks. Each
 * method returns the runs to be sent now, in order. The caller must queue a run before it takes the next one.
 */
export interface TextCutter {
  /** Input sequence of the oldest record with held text; undefined when none is held. */
  readonly oldestSeq: number | undefined;
  /** When `releaseDue` must be called, on the clock of `now`; undefined while no held text waits for its time. */
  readonly wakeAt: number | undefined;

  /** Takes the tokens of a text input that are not folded yet. `firstN`: ordinal of its first token. */
  offer(
    record: AgentRecord,
    input: TextInput,
    firstN: number,
    folded: FoldedText,
    stored: StoredInput,
    now: number,
  ): Iterable<TextRun>;

  /** Releases text before an input that is not text. Half a surrogate pair may stay, unless its lane or the task ends. */
  flushFor(from: Producer, input: Exclude<AgentInput, TextInput>, now: number): Iterable<TextRun>;

  /** Releases all text, even half of a surrogate pair, because a message or a cancel ends all open lanes. */
  closeAll(now: number): Iterable<TextRun>;

  /** Releases text, except half of a surrogate pair. */
  flush(now: number): Iterable<TextRun>;

  /** Releases text whose hold time is over. Call it after all available tokens were offered, and at `wakeAt`. */
  releaseDue(now: number, isOver: boolean): Iterable<TextRun>;
}
