import { write } from 'node:fs';
import { inspect } from 'node:util';

/** Longest text about one error. A pipe accepts it in one write. */
const ERROR_CHARS_MAX = 8 * 1024;

/**
 * Writes the errors that an agent throws, with message, stack and causes, to a file descriptor of its author's terminal. A string is
 * written as a sentence about the agent. `agent` may be set later, because some code names itself.
 */
export function authorTerminal(fd: number, agent: { name?: string | undefined }): (error: unknown) => void {
  return error => {
    const shown = typeof error === 'string' ? `: ${error}` : ` threw ${inspect(error)}`;
    const text = `agent ${agent.name ?? 'without a name'}${shown}`.slice(0, ERROR_CHARS_MAX);
    // The terminal may be gone.
    write(fd, `${text}\n`, () => {});
  };
}
