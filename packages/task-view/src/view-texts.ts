import type { ViewText } from './client-view.ts';
import type { TextLabel, ViewChange } from './view-change.ts';

type TextState = {
  readonly label: TextLabel;
  readonly turn: number;
  text: string;
  /** Characters of `text` that a new attempt has repeated so far; undefined outside such a repetition. */
  repeated: number | undefined;
  isComplete: boolean;
  isCurrent: boolean;
  /** The value in the view, until the state changes. */
  shown: ViewText | undefined;
};

/**
 * The texts of a task: the answer and the plan, each of which consists of several artifacts. A new attempt of an agent begins its text
 * again. While it repeats the text of the previous attempt, nothing changes; once it differs, the text is restarted. Each delta is compared
 * only with the characters at its position, so that the cost is linear in the length of the text.
 */
export class ViewTexts {
  readonly #texts = new Map<string, TextState>();
  readonly #changes: (change: ViewChange) => void;
  #list: readonly ViewText[] | undefined;
  /** The answer is complete. A text that opens later begins another answer. */
  #isAnswered = false;

  constructor(changes: (change: ViewChange) => void) {
    this.#changes = changes;
  }

  get list(): readonly ViewText[] {
    this.#list ??= [...this.#texts.values()].map(shownOf);
    return this.#list;
  }

  /** The texts of the current answer, in the order in which they began. Concatenation does not copy the texts. */
  get answer(): string {
    let answer = '';
    for (const { text } of this.#current('answer')) answer += text;
    return answer;
  }

  /** The texts of the newest plan and of the plans below it. */
  get plan(): string {
    return this.#current('plan')
      .map(({ text }) => text)
      .filter(text => text !== '')
      .join('\n');
  }

  has(id: string): boolean {
    return this.#texts.has(id);
  }

  labelOf(id: string): TextLabel | undefined {
    return this.#texts.get(id)?.label;
  }

  /** One artifact update. `isReplacement`: from a new attempt, or for a text that is sent whole. */
  update(label: TextLabel, turn: number, text: string, isReplacement: boolean): void {
    const state = this.#texts.get(label.id) ?? this.#open(label, turn);
    if (isReplacement && state.text !== '') {
      state.repeated = 0;
      state.isComplete = false;
    }
    this.#add(state, text);
  }

  /** The whole text so far, from a snapshot of the task. */
  snapshot(label: TextLabel, turn: number, text: string): void {
    const state = this.#texts.get(label.id) ?? this.#open(label, turn);
    state.repeated = undefined;
    if (text.startsWith(state.text)) this.#append(state, text.slice(state.text.length));
    else this.#restart(state, text);
  }

  /** Voids the texts that a snapshot of the task no longer has. */
  keepOnly(ids: ReadonlySet<string>): void {
    for (const state of this.#texts.values()) if (!ids.has(state.label.id) && state.text !== '') this.#restart(state, '');
  }

  end(id: string): void {
    const state = this.#texts.get(id);
    if (state === undefined || state.isComplete) return;
    // The last attempt ended with less text than the previous one.
    if (state.repeated !== undefined) this.#restart(state, state.text.slice(0, state.repeated));
    state.isComplete = true;
    this.#touch(state);
    this.#changes({ kind: 'text-ended', text: state.label });
  }

  endAll(): void {
    for (const id of this.#texts.keys()) this.end(id);
  }

  /** The texts so far belong to an earlier turn. */
  beginTurn(): void {
    for (const state of this.#texts.values()) this.#leave(state);
    this.#isAnswered = false;
  }

  /**
   * The whole answer has arrived. Nothing changes if the texts are equal to it. If the whole answer has only the newest texts, the others
   * belong to an earlier turn. Missing text becomes a text with the id of the whole answer.
   */
  reconcile(label: TextLabel, turn: number, whole: string): void {
    const texts = this.#current('answer');
    for (const { label: one } of texts) this.end(one.id);
    const all = this.answer;
    let start = 0;
    let index = 0;
    // A slice to the end of a text does not copy it.
    while (index < texts.length && !whole.startsWith(all.slice(start))) {
      start += texts[index]!.text.length;
      index += 1;
    }
    if (index === texts.length && all !== '') for (const state of texts) this.#restart(state, '');
    else for (const state of texts.slice(0, index)) this.#leave(state);
    const missing = whole.slice(index === texts.length ? 0 : all.length - start);
    if (missing !== '') {
      this.update(label, turn, missing, true);
      this.end(label.id);
    }
    this.#isAnswered = true;
  }

  #current(channel: ViewText['channel']): TextState[] {
    return [...this.#texts.values()].filter(({ label, isCurrent }) => isCurrent && label.channel === channel);
  }

  #open(label: TextLabel, turn: number): TextState {
    if (this.#isAnswered && label.channel === 'answer') {
      for (const state of this.#current('answer')) this.#leave(state);
      this.#isAnswered = false;
    }
    const state: TextState = {
      label,
      turn,
      text: '',
      repeated: undefined,
      isComplete: false,
      isCurrent: true,
      shown: undefined,
    };
    this.#texts.set(label.id, state);
    this.#list = undefined;
    return state;
  }

  #add(state: TextState, delta: string): void {
    const { repeated, text } = state;
    const expected = repeated === undefined ? '' : text.slice(repeated, repeated + delta.length);
    if (repeated !== undefined && !delta.startsWith(expected)) this.#restart(state, text.slice(0, repeated) + delta);
    else if (repeated !== undefined && repeated + expected.length < text.length) state.repeated = repeated + delta.length;
    else {
      state.repeated = undefined;
      this.#append(state, delta.slice(expected.length));
    }
  }

  #append(state: TextState, delta: string): void {
    if (delta === '') return;
    state.text += delta;
    this.#touch(state);
    this.#changes({ kind: 'text', text: state.label, delta });
  }

  #restart(state: TextState, whole: string): void {
    state.repeated = undefined;
    state.text = whole;
    this.#touch(state);
    this.#changes({ kind: 'text-restarted', text: state.label, whole });
  }

  #leave(state: TextState): void {
    state.isCurrent = false;
    this.#touch(state);
  }

  #touch(state: TextState): void {
    state.shown = undefined;
    this.#list = undefined;
  }
}

function shownOf(state: TextState): ViewText {
  const { label, turn, text, isComplete, isCurrent } = state;
  state.shown ??= { ...label, turn, text, isComplete, isCurrent };
  return state.shown;
}
