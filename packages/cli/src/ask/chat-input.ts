import { createInterface, type Interface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { Output } from '@hopline/terminal';

/** Maximum number of lines that may wait for their turn. While this many wait, a pipe is not read. */
const WAITING_MAX = 100;

type ChatInputEvents = {
  /** Called for Ctrl-C on a terminal, because no signal is sent while readline reads keys. */
  onInterrupt: () => void;
  /** Called when a line arrives while no reader waits for one. */
  onLine: () => void;
};

/** The lines of a chat: with a prompt and editing on a terminal, otherwise as they arrive. */
export class ChatInput {
  readonly #lines: string[] = [];
  readonly #interface: Interface;
  readonly #prompts: boolean;
  readonly #output: Output;
  #waiting: ((line: string | undefined) => void) | undefined;
  #closed = false;

  constructor(stdin: Readable & { readonly isTTY?: boolean }, output: Output, { onInterrupt, onLine }: ChatInputEvents) {
    const terminal = stdin.isTTY ? output.terminal : undefined;
    this.#output = output;
    this.#prompts = terminal !== undefined;
    this.#interface = createInterface({ input: stdin, terminal: this.#prompts, ...(terminal && { output: terminal }) });
    this.#interface.on('SIGINT', onInterrupt);
    this.#interface.on('line', line => {
      const waiting = this.#waiting;
      this.#waiting = undefined;
      if (waiting !== undefined) return waiting(line);
      this.#lines.push(line);
      if (this.#lines.length >= WAITING_MAX && !this.#prompts) this.#interface.pause();
      onLine();
    });
    this.#interface.on('close', () => {
      this.#closed = true;
      this.#waiting?.(undefined);
      this.#waiting = undefined;
    });
  }

  /** The next line, or undefined after the last one. */
  async next(prompt: string): Promise<string | undefined> {
    const line = this.#lines.shift();
    if (line !== undefined) {
      if (!this.#prompts && !this.#closed) this.#interface.resume();
      return line;
    }
    if (this.#closed) return undefined;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    this.#waiting = resolve;
    if (this.#prompts) {
      this.#output.end();
      this.#interface.setPrompt(prompt);
      this.#interface.prompt(true);
    }
    return promise;
  }

  /** Prints a line, and then the prompt again if there was one. */
  aside(text: string): void {
    if (this.#prompts && this.#waiting !== undefined) this.#output.terminal?.write('\n');
    this.#output.artifact(text);
    if (this.#prompts && this.#waiting !== undefined) this.#interface.prompt(true);
  }

  /** Removes the first waiting line if `isIt` accepts it. */
  takeIf(isIt: (line: string) => boolean): boolean {
    const [line] = this.#lines;
    if (line === undefined || !isIt(line.trim())) return false;
    this.#lines.shift();
    return true;
  }

  close(): void {
    this.#lines.length = 0;
    if (!this.#closed) this.#interface.close();
  }
}
