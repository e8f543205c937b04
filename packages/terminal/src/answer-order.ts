import type { TextLabel, ViewChange, ViewText } from '@hopline/task-view';

/** Receives the text of the answer. Printed text cannot be taken back. */
export type AnswerSink = {
  text(text: string, label: TextLabel): void;
  /** All text so far is void, and the answer starts over. */
  restart(): void;
};

/** One text of the answer. */
type OrderedText = {
  label: TextLabel;
  /** The text that waits for those before it. */
  pending: string;
  isPrinted: boolean;
  isComplete: boolean;
};

/**
 * Orders the changes of an answer for output that cannot be taken back: each text once, in the order in which the texts began. Agents that
 * write at the same time are printed one after the other. A change that contradicts printed text starts the answer over.
 */
export class AnswerOrder {
  readonly #sink: AnswerSink;
  /** Texts of the current turn, by id. */
  readonly #texts = new Map<string, OrderedText>();

  constructor(sink: AnswerSink) {
    this.#sink = sink;
  }

  /**
   * Prints the text that the changes of one event add. `textsOf` returns the texts of the view after the changes, and is called when the
   * answer starts over.
   */
  add(changes: readonly ViewChange[], textsOf: () => readonly ViewText[]): void {
    let isVoid = false;
    for (const change of changes) {
      if (change.kind === 'turn') {
        this.#flush();
        this.#texts.clear();
      } else if (change.kind === 'text' || change.kind === 'text-restarted' || change.kind === 'text-ended')
        if (change.text.channel === 'answer' && !this.#take(change)) isVoid = true;
    }
    if (isVoid) this.#startOver(textsOf());
    this.#flush();
  }

  /** Returns false if the change contradicts printed text. */
  #take(change: Extract<ViewChange, { text: TextLabel }>): boolean {
    const { id } = change.text;
    const known = this.#texts.get(id);
    const text = known ?? { label: change.text, pending: '', isPrinted: false, isComplete: false };
    this.#texts.set(id, text);
    if (change.kind === 'text-ended') text.isComplete = true;
    else if (change.kind === 'text-restarted') {
      text.pending = change.whole;
      return !text.isPrinted;
    } else {
      text.pending += change.delta;
      // A later attempt may extend a text that was complete, although texts after it may be printed already.
      if (text.isComplete && this.#isFollowed(id)) return false;
    }
    return true;
  }

  #isFollowed(id: string): boolean {
    const ids = [...this.#texts.keys()];
    return ids.slice(ids.indexOf(id) + 1).some(later => this.#texts.get(later)!.isPrinted);
  }

  #startOver(texts: readonly ViewText[]): void {
    this.#sink.restart();
    this.#texts.clear();
    for (const { text, isComplete, isCurrent, turn: _turn, ...label } of texts)
      if (isCurrent && label.channel === 'answer')
        this.#texts.set(label.id, { label, pending: text, isPrinted: false, isComplete });
  }

  #flush(): void {
    for (const text of this.#texts.values()) {
      if (text.pending !== '') {
        this.#sink.text(text.pending, text.label);
        text.isPrinted = true;
        text.pending = '';
      }
      if (!text.isComplete) return;
    }
  }
}
