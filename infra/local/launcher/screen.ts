import { type Display, withoutControls } from '@hopline/cli';

type Output = { isTTY?: boolean; write(text: string): unknown };

/** All output of the launcher. Streamed text and notices share it: a notice within a text starts on its own line. */
export class Screen implements Display {
  readonly #output: Output;
  #atLineStart = true;

  constructor(output: Output) {
    this.#output = output;
  }

  /** Streamed text, as it arrives. */
  answer(text: string): void {
    if (text === '') return;
    this.#output.write(withoutControls(text));
    this.#atLineStart = text.endsWith('\n');
  }

  line(text = ''): void {
    this.#output.write(`${this.#atLineStart ? '' : '\n'}${text}\n`);
    this.#atLineStart = true;
  }

  /** A line above streamed text, colored on a terminal. */
  heading(text: string): void {
    this.line(this.#style('1;36', withoutControls(text)));
  }

  /** A dimmed line. */
  note(text: string): void {
    this.line(this.#style('2', withoutControls(text)));
  }

  warn(text: string): void {
    this.line(this.#style('31', withoutControls(text)));
  }

  #style(code: string, text: string): string {
    return this.#output.isTTY ? `\x1b[${code}m${text}\x1b[0m` : text;
  }
}
