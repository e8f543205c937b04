import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { compileCache } from '../../kit/compile-cache.ts';
import { commandProgram } from './service-process.ts';

export type Finished = { code: number | null; out: string; err: string };

/** The `hopline` command as a process with pipes. */
export class HoplineCommand {
  out = '';
  err = '';
  readonly finished: Promise<Finished>;
  readonly #child;

  /** `input` null leaves standard input open for `write`. */
  constructor(
    url: string,
    argv: readonly string[],
    input: string | null = '',
    environment: Record<string, string> = {},
    program = commandProgram(argv),
  ) {
    const env = { PATH: process.env.PATH, ...compileCache(), HOPLINE_URL: url, ...environment };
    this.#child = spawn(process.execPath, [program, ...argv], { env });
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => (this.out += text));
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => (this.err += text));
    this.#child.stdin.on('error', () => {});
    if (input !== null) this.#child.stdin.end(input);
    this.finished = once(this.#child, 'close').then(([code]) => ({ code: code as number | null, out: this.out, err: this.err }));
  }

  /** Resolves after this many characters on stdout. */
  async printed(chars: number): Promise<void> {
    while (this.out.length < chars) await Promise.race([once(this.#child.stdout, 'data'), this.finished]);
  }

  /** Resolves once stdout and stderr contain the text `times` times, counted from the start. */
  async shows(text: string, times = 1): Promise<void> {
    const isShown = () => (this.out + this.err).split(text).length > times;
    const { stdout, stderr } = this.#child;
    while (!isShown()) {
      const ended = this.finished.then(() => {
        if (!isShown()) throw new Error(`"${text}" was not printed: ${this.out}${this.err}`);
      });
      await Promise.race([once(stdout, 'data'), once(stderr, 'data'), ended]);
    }
  }

  write(text: string): void {
    this.#child.stdin.write(text);
  }

  /** Ends standard input. */
  end(): void {
    this.#child.stdin.end();
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Closes the reading end of stdout. */
  closeOutput(): void {
    this.#child.stdout.destroy();
  }
}
