import { once } from 'node:events';
import { WriteStream } from 'node:tty';
import { type Display, withoutControls } from './display.ts';

/** A standard stream of the process. */
export type Sink = {
  readonly isTTY?: boolean | undefined;
  /** Size of a terminal. */
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  write(text: string): unknown;
};

type Environment = Readonly<Record<string, string | undefined>>;

const DIM = '2';
const RED = '31';
const GREEN = '32';

/** Used if the terminal does not report its width. */
const COLUMNS_DEFAULT = 80;
const COLUMNS_MIN = 20;
const ROWS_DEFAULT = 24;
/** Moves the cursor home and clears the terminal. */
const CLEAR = '\x1b[H\x1b[2J';
/** Removes the rest of the line after the cursor. */
const CLEAR_LINE = '\x1b[K';

/**
 * Whether to use colors, decided as by Node's `util.styleText`: FORCE_COLOR, then NO_COLOR, NODE_DISABLE_COLORS and TERM. Without them, a
 * terminal has colors.
 */
export function hasColors({ isTTY }: Sink, environment: Environment): boolean {
  const depth = WriteStream.prototype.getColorDepth(environment);
  return depth > 2 && (environment.FORCE_COLOR !== undefined || isTTY === true);
}

/**
 * The output of a command. The answer goes to standard output, unchanged unless that is a terminal; everything else goes to standard error.
 */
export class Output implements Display {
  readonly #out: Sink;
  readonly #err: Sink;
  readonly #outColors: boolean;
  readonly #colors: boolean;
  #midLine = false;
  #unendedAnswer = false;

  constructor(out: Sink, err: Sink, environment: Environment) {
    this.#out = out;
    this.#err = err;
    this.#outColors = hasColors(out, environment);
    this.#colors = hasColors(err, environment);
  }

  /** Width of the terminal on standard output; undefined in a pipe. */
  get columns(): number | undefined {
    return this.#out.isTTY ? Math.max(this.#out.columns || COLUMNS_DEFAULT, COLUMNS_MIN) : undefined;
  }

  /** Text of the answer, as it arrives. */
  answer(text: string): void {
    if (text === '') return;
    this.#midLine = !text.endsWith('\n');
    this.#unendedAnswer = this.#midLine;
    this.#out.write(this.#out.isTTY ? withoutControls(text) : text);
  }

  /** A line of the command's result that is not text of an agent. */
  line(text: string): void {
    this.#out.write(`${this.#out.isTTY ? withoutControls(text) : text}\n`);
  }

  /** A line of a comparison, for its first or second side, in that side's color if standard output has colors. */
  compared(text: string, side: 'first' | 'second'): void {
    const clean = this.#out.isTTY ? withoutControls(text) : text;
    this.#out.write(this.#outColors ? `\x1b[${side === 'first' ? RED : GREEN}m${clean}\x1b[0m\n` : `${clean}\n`);
  }

  /** Replaces the screen with as many lines as it has rows. `last` is always shown below them, however few rows there are. */
  screen(lines: readonly string[], last: readonly string[] = []): void {
    this.#out.write(CLEAR);
    const rows = Math.max((this.#out.rows || ROWS_DEFAULT) - 1 - last.length, 1);
    for (const line of [...lines.slice(0, rows), ...last]) this.line(line);
  }

  /** Writes part of a file to standard output, unchanged unless that is a terminal. Resolves when more may be written. */
  async raw(text: string): Promise<void> {
    const hasRoom = this.#out.write(this.#out.isTTY ? withoutControls(text) : text);
    if (hasRoom === false && 'once' in this.#out) await once(this.#out as NodeJS.WritableStream, 'drain');
  }

  /** Prints a line that the next one replaces, only if standard error is a terminal. '' removes the line. */
  progress(text: string): void {
    if (this.#err.isTTY) this.#err.write(`\r${withoutControls(text)}${CLEAR_LINE}`);
  }

  /** Prints a line of progress, only if standard output is a terminal. */
  note(text: string): void {
    if (this.#out.isTTY) this.#aside(text, DIM);
  }

  /** Prints a result outside the answer, even into a pipe that otherwise gets only the answer. */
  artifact(text: string): void {
    this.#aside(text, DIM);
  }

  /** Prints a line, even if the output is piped. */
  warn(text: string): void {
    this.#aside(text, RED);
  }

  /** The terminal for prompts: standard output, otherwise standard error. Undefined if neither is a terminal. */
  get terminal(): NodeJS.WritableStream | undefined {
    return [this.#out, this.#err].find((sink): sink is Sink & NodeJS.WritableStream => sink.isTTY === true && 'on' in sink);
  }

  /** Ends an unfinished line, even in a pipe, because several answers follow each other. */
  endLine(): void {
    if (this.#unendedAnswer) this.#out.write('\n');
    this.#midLine = false;
    this.#unendedAnswer = false;
  }

  /** Ends an unfinished line on a terminal, so that the prompt starts on a line of its own. A pipe gets only the text of the agent. */
  end(): void {
    if (this.#out.isTTY && this.#midLine) {
      this.#out.write('\n');
      this.#unendedAnswer = false;
    }
    this.#midLine = false;
  }

  #aside(text: string, color: string): void {
    this.end();
    const clean = withoutControls(text);
    this.#err.write(this.#colors ? `\x1b[${color}m${clean}\x1b[0m\n` : `${clean}\n`);
  }
}
