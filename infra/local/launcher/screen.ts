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
    this.#write(withoutControls(text));
  }

  /** A line above streamed text, colored on a terminal. */
  heading(text: string): void {
    this.#write(this.#style('1;36', text));
  }

  /** A dimmed line. */
  note(text: string): void {
    this.#write(this.#style('2', text));
  }

  warn(text: string): void {
    this.#write(this.#style('31', text));
  }

  #write(line: string): void {
    this.#output.write(`${this.#atLineStart ? '' : '\n'}${line}\n`);
    this.#atLineStart = true;
  }

  #style(code: string, text: string): string {
    const clean = withoutControls(text);
    return this.#colors ? `\x1b[${code}m${clean}\x1b[0m` : clean;
  }
}
