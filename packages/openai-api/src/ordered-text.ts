/** Precedes text that replaces text that a client has already shown, because no chunk can take that back. */
const VOID_NOTICE = '\n\n[The agent began again. The text above is void.]\n\n';

/** `waiting`: the end of `text` that has not been sent. Kept separately, because a slice of a growing text would copy it for each delta. */
type OneText = { text: string; waiting: string; isShown: boolean; hasEnded: boolean };

/** The texts of an answer as one text. Each is sent completely before the next one, in the order in which they began. */
export class OrderedText {
  readonly #texts = new Map<string, OneText>();
  #suffix = '';

  /** The whole answer so far, without void text. */
  get whole(): string {
    let whole = '';
    for (const { text } of this.#texts.values()) whole += text;
    return whole + this.#suffix;
  }

  /** Each method returns the text to be sent now. */
  add(id: string, delta: string): string {
    const one = this.#texts.get(id) ?? this.#open(id);
    // A later attempt continues a text after its former end, after which other texts may have gone out.
    if (one.hasEnded) return this.restart(id, one.text + delta);
    one.text += delta;
    one.waiting += delta;
    return this.#send();
  }

  restart(id: string, whole: string): string {
    const one = this.#texts.get(id) ?? this.#open(id);
    const isContinued = whole.startsWith(one.text) && !this.#isLaterShown(id);
    one.waiting = isContinued ? one.waiting + whole.slice(one.text.length) : whole;
    one.text = whole;
    if (isContinued || !one.isShown) return this.#send();
    for (const each of this.#texts.values()) each.waiting = each.text;
    return VOID_NOTICE + this.#send();
  }

  end(id: string): string {
    const one = this.#texts.get(id);
    if (one === undefined) return '';
    one.hasEnded = true;
    return this.#send();
  }

  /** A text after all others, such as a question. */
  endWith(text: string): string {
    for (const one of this.#texts.values()) one.hasEnded = true;
    const rest = this.#send();
    this.#suffix = this.whole === '' ? text : `\n\n${text}`;
    return rest + this.#suffix;
  }

  #isLaterShown(id: string): boolean {
    const texts = [...this.#texts];
    return texts.slice(texts.findIndex(([one]) => one === id) + 1).some(([, { isShown }]) => isShown);
  }

  #open(id: string): OneText {
    const one = { text: '', waiting: '', isShown: false, hasEnded: false };
    this.#texts.set(id, one);
    return one;
  }

  #send(): string {
    let out = '';
    for (const one of this.#texts.values()) {
      out += one.waiting;
      one.isShown ||= one.waiting !== '';
      one.waiting = '';
      if (!one.hasEnded) break;
    }
    return out;
  }
}
