import { type Display, withoutControls } from './display.ts';

/** A standard stream of the process. */
export type Sink = { readonly isTTY?: boolean | undefined; write(text: string): unknown };

const DIM = '2';
const RED = '31';

/**
 * The output of a command: the answer goes to standard output, unchanged unless that is a terminal; all else to standard error.
 */
export class Output implements Display {
  readonly #out: Sink;
  readonly #err: Sink;
  readonly #colors: boolean;
  #midLine = false;

  constructor(out: Sink, err: Sink, noColor: boolean) {
    this.#out = out;
    this.#err = err;
    this.#colors = err.isTTY === true && !noColor;
  }

  /** Text of the answer, as it arrives. */
  answer(text: string): void {
    if (text === '') return;
    this.#midLine = !text.endsWith('\n');
    this.#out.write(this.#out.isTTY ? withoutControls(text) : text);
  }

  /** A line of the command's result that is not the answer of an agent. */
  line(text: string): void {
    this.#out.write(`${this.#out.isTTY ? withoutControls(text) : text}\n`);
  }

  /** Progress: printed only when standard output is a terminal. */
  note(text: string): void {
    if (this.#out.isTTY) this.#aside(text, DIM);
  }

  /** Printed always, also when the output is piped. */
  warn(text: string): void {
    this.#aside(text, RED);
  }

  /** Ends an unfinished line on a terminal, so that the prompt starts on its own. A pipe gets only the text of the agent. */
  end(): void {
    if (this.#out.isTTY && this.#midLine) this.#out.write('\n');
    this.#midLine = false;
  }

  #aside(text: string, color: string): void {
    this.end();
    const clean = withoutControls(text);
    this.#err.write(this.#colors ? `\x1b[${color}m${clean}\x1b[0m\n` : `${clean}\n`);
  }
}
