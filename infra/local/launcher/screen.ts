import { type Display, hasColors, type Sink, withoutControls } from '@hopline/cli';

/** All output of the launcher. Streamed text and notices share it: a notice within a text starts on its own line. */
export class Screen implements Display {
  readonly #output: Sink;
  readonly #colors: boolean;
  #atLineStart = true;

  /** Colors as in every command of Node: `environment` may have FORCE_COLOR or NO_COLOR. */
  constructor(output: Sink, environment: Readonly<Record<string, string | undefined>>) {
    this.#output = output;
    this.#colors = hasColors(output, environment);
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
    return this.#colors ? `\x1b[${code}m${text}\x1b[0m` : text;
  }
}
