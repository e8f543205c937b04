/** A standard stream of the process. */
export type Sink = { readonly isTTY?: boolean | undefined; write(text: string): unknown };

/** C0 and C1 controls but tab and line feed: what an agent says must not command a terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
const DIM = '2';
const RED = '31';

/** Everything a command says. The answer goes to standard output, byte for byte where that is no terminal; all else goes to standard error. */
export class Output {
  readonly #out: Sink;
  readonly #err: Sink;
  readonly #colours: boolean;
  #midLine = false;

  constructor(out: Sink, err: Sink, noColour: boolean) {
    this.#out = out;
    this.#err = err;
    this.#colours = err.isTTY === true && !noColour;
  }

  /** Text of the answer, as it comes. */
  answer(text: string): void {
    if (text === '') return;
    this.#midLine = !text.endsWith('\n');
    this.#out.write(this.#out.isTTY ? text.replace(CONTROLS, '') : text);
  }

  /** A line of what was asked for, which is no answer of an agent. */
  line(text: string): void {
    this.#out.write(`${this.#out.isTTY ? text.replace(CONTROLS, '') : text}\n`);
  }

  /** What goes on meanwhile: only for somebody who looks at a terminal. */
  note(text: string): void {
    if (this.#out.isTTY) this.#aside(text, DIM);
  }

  /** What must be known also where nobody looks. */
  warn(text: string): void {
    this.#aside(text, RED);
  }

  /** A terminal's prompt begins on a line of its own; what is piped gets nothing that the agent did not say. */
  end(): void {
    if (this.#out.isTTY && this.#midLine) this.#out.write('\n');
    this.#midLine = false;
  }

  #aside(text: string, colour: string): void {
    this.end();
    const clean = text.replace(CONTROLS, '');
    this.#err.write(this.#colours ? `\x1b[${colour}m${clean}\x1b[0m\n` : `${clean}\n`);
  }
}
