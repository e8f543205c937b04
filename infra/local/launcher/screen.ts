type Output = { isTTY?: boolean; write(text: string): unknown };

/** Everything the launcher says. Streamed text and notices share it: a notice in the middle of a text starts its own line. */
export class Screen {
  readonly #output: Output;
  #atLineStart = true;

  constructor(output: Output) {
    this.#output = output;
  }

  /** Streamed text, as it comes. Control characters of an agent are not let through to a terminal. */
  text(text: string): void {
    if (text === '') return;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
    this.#output.write(text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, ''));
    this.#atLineStart = text.endsWith('\n');
  }

  /** A line of our own. */
  line(text = ''): void {
    this.#output.write(`${this.#atLineStart ? '' : '\n'}${text}\n`);
    this.#atLineStart = true;
  }

  /** A line above streamed text, coloured on a terminal. */
  heading(text: string): void {
    this.line(this.#style('1;36', text));
  }

  /** A line of less weight. */
  aside(text: string): void {
    this.line(this.#style('2', text));
  }

  #style(code: string, text: string): string {
    return this.#output.isTTY ? `\x1b[${code}m${text}\x1b[0m` : text;
  }
}
