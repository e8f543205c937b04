import type { AgentEvent } from '@hopline/agent';
import type { Deltas } from './options.ts';
import { type ReceivedText, RepeatedTexts } from './repeated-texts.ts';

/** Texts count as cumulative if this many in a row, from the first one, begin with the previous text and are longer. */
export const CUMULATIVE_STEPS = 3;
/** Maximum number of texts held while their meaning is undecided. With one more they count as pieces. */
export const HELD_TEXTS_MAX = 8;

/**
 * Converts the texts of an agent's working statuses to events of the answer. Without a setting the first texts decide what they all mean:
 * each is the next piece of the answer, or each is the answer so far. A text that repeats its predecessor and adds to it may be either. It
 * is held until later texts, or the whole answer, decide, so that text which was sent need not be taken back.
 *
 * `events`: receives the events. A generator would cost as much as the rest of a token.
 */
export class StatusTexts {
  #deltas: Deltas | undefined;
  /** The first text, which was sent, and the held ones, while undecided. */
  #undecided: ReceivedText[] = [];
  #last: string | undefined;
  #steps = 0;
  /** Absent if a setting gives the meaning of the texts. */
  readonly #repeated: RepeatedTexts | undefined;
  readonly #onCumulative: () => void;

  /** `deltas`: the setting. `onCumulative` is called when the texts look cumulative and no setting states it. */
  constructor(deltas: Deltas | undefined, onCumulative: () => void) {
    this.#deltas = deltas;
    this.#repeated = deltas === undefined ? new RepeatedTexts() : undefined;
    this.#onCumulative = deltas === undefined ? onCumulative : () => {};
  }

  /** Undefined while undecided. */
  get deltas(): Deltas | undefined {
    return this.#deltas;
  }

  take(status: ReceivedText, events: AgentEvent[]): void {
    const { text } = status;
    const isStep = this.#last !== undefined && text.length > this.#last.length && text.startsWith(this.#last);
    const isBreak = this.#last !== undefined && !text.startsWith(this.#last);
    this.#last = text;
    this.#steps = isBreak ? 0 : this.#steps + (isStep ? 1 : 0);
    if (isStep && this.#steps === CUMULATIVE_STEPS) this.#onCumulative();
    if (this.#deltas !== undefined) {
      this.#show(status, events);
      return;
    }
    this.#undecided.push(status);
    if (this.#undecided.length === 1) this.#showPiece(status, events);
    if (isBreak || this.#undecided.length > 1 + HELD_TEXTS_MAX) this.#decide('incremental', events);
    else if (this.#steps === CUMULATIVE_STEPS) this.#decide('cumulative', events);
  }

  /**
   * The agent has sent a text that may be its whole answer. It settles the meaning of the held texts if it equals one of the two possible
   * answers.
   */
  compare(whole: string, events: AgentEvent[]): void {
    this.#repeated?.compare(whole, events);
    if (this.#deltas !== undefined || this.#undecided.length < 2) return;
    if (whole === this.#undecided.map(({ text }) => text).join('')) this.#decide('incremental', events);
    else if (whole === this.#last) this.#decide('cumulative', events);
  }

  /** Text of an artifact, which the texts of statuses may repeat. */
  artifact(id: string, text: string, chunk: { append: boolean; last: boolean }, events: AgentEvent[]): void {
    const soFar = this.#repeated?.artifact(id, text, chunk);
    // If chunks of an artifact add up to the text of the statuses, the texts are pieces.
    if (soFar !== undefined && this.#deltas === undefined && this.#undecided.length > 1) {
      const pieces = this.#undecided.map(({ text }) => text).join('');
      if (soFar.length === pieces.length && soFar.text === pieces) this.#decide('incremental', events);
    }
    this.#repeated?.settle(events);
  }

  /** Another event follows, so a text that may be a repetition is not held any longer. */
  settle(events: AgentEvent[]): void {
    this.#repeated?.settle(events);
  }

  /** No text follows: held texts that are still undecided are pieces, as A2A defines them. */
  end(events: AgentEvent[]): void {
    if (this.#deltas === undefined && this.#undecided.length > 1) {
      const isWhole = this.#last !== undefined && this.#repeated?.isArtifact(this.#last);
      this.#decide(isWhole ? 'cumulative' : 'incremental', events);
    }
    this.#repeated?.end(events);
  }

  /** Joins the texts of a whole history into one. */
  wholeOf(texts: readonly string[]): string {
    if (this.#deltas !== 'incremental') return texts.at(-1) ?? '';
    if (this.#repeated === undefined) return texts.join('');
    const repeated = new RepeatedTexts();
    const events: AgentEvent[] = [];
    for (const text of texts) repeated.take({ text, id: '' }, events);
    repeated.end(events);
    return events.map(event => (event.type === 'text' ? event.text : '')).join('');
  }

  #decide(deltas: 'incremental' | 'cumulative', events: AgentEvent[]): void {
    const [, ...held] = this.#undecided;
    this.#deltas = deltas;
    this.#undecided = [];
    // The newest text contains those before it.
    for (const status of deltas === 'cumulative' ? held.slice(-1) : held) this.#show(status, events);
  }

  #show(status: ReceivedText, events: AgentEvent[]): void {
    if (this.#deltas === 'incremental') this.#showPiece(status, events);
    else events.push({ type: 'snapshot', text: status.text });
  }

  #showPiece(status: ReceivedText, events: AgentEvent[]): void {
    if (this.#repeated === undefined) events.push(token(status));
    else this.#repeated.take(status, events);
  }
}

function token({ text, id }: ReceivedText): AgentEvent {
  return { type: 'text', text, ...(id !== '' && { id }) };
}
