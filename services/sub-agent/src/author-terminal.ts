import { write } from 'node:fs';
import { inspect } from 'node:util';

/** Longest text about one error, which a pipe accepts at once. */
const ERROR_CHARS_MAX = 8 * 1024;

/**
 * Writes errors that an agent throws, with message, stack and causes, to a file descriptor of its author's terminal; a string is a sentence about
 * the agent. `agent` may get its name later:
 * some code names itself.
 */
export function authorTerminal(fd: number, agent: { name?: string | undefined }): (error: unknown) => void {
  return error => {
    const shown = typeof error === 'string' ? `: ${error}` : ` threw ${inspect(error)}`;
    const text = `agent ${agent.name ?? 'without a name'}${shown}`.slice(0, ERROR_CHARS_MAX);
    // The terminal may be gone.
    write(fd, `${text}\n`, () => {});
  };
}
