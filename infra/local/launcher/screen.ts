import { type Display, hasColors, type Sink, withoutControls } from '@hopline/terminal';

/** Notices that wait for the end of an answer. Beyond this many, the answer is interrupted rather than the reader left waiting. */
const HELD_NOTICES_MAX = 50;

/** All output of the launcher. Streamed text and lines share it: a line within a text starts on its own line. */
export class Screen implements Display {
  readonly #output: Sink;
  readonly #colors: boolean;
  #atLineStart = true;
  #held: (() => void)[] | undefined;

  /** Colors follow the convention of Node's commands: `environment` may have FORCE_COLOR or NO_COLOR. */
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

  /** A line about the cluster, not part of an answer. It waits while an answer streams. */
  notice(text: string): void {
    this.#unlessHeld(() => this.line(text));
  }

  /** Like `notice`, for an error. */
  warning(text: string): void {
    this.#unlessHeld(() => this.warn(text));
  }

  /** From now on notices wait. Returns a function that prints them and ends the wait. */
  holdNotices(): () => void {
    this.#held = [];
    return () => this.#release();
  }

  #release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const print of held) print();
  }

  #unlessHeld(print: () => void): void {
    this.#held?.push(print);
    if (this.#held === undefined) print();
    else if (this.#held.length > HELD_NOTICES_MAX) this.#release();
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
