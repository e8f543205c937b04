import { inspect } from 'node:util';
import { AgentMisuse } from '@hopline/agent';
import { AUTHOR_TEXT_CHARS_MAX, boundedThrown, type Thrown } from './protocol.ts';

/** An error of the code as a value of the protocol. Never throws, whatever the members of the error do when they are read. */
export function toThrown(error: unknown): Thrown {
  const isError = attempt(() => error instanceof Error, false);
  const shown = (isError ? error : new Error(typeof error)) as Error;
  const code = attempt(() => (error as { code?: unknown } | null | undefined)?.code, undefined);
  return boundedThrown({
    name: isError ? attempt(() => String(shown.name), 'Error') : typeof error,
    message: attempt(() => String(shown.message), ''),
    stack: attempt(() => String(shown.stack ?? ''), ''),
    text: authorTextOf(error),
    ...(attempt(() => error instanceof AgentMisuse, false) && { misuse: true }),
    ...(typeof code === 'string' && code.length <= 64 && { code }),
  });
}

/** An error with stack and causes, for its author. Never throws. */
export function authorTextOf(error: unknown): string {
  const text = attempt(() => inspect(error), undefined) ?? attempt(() => inspect(error, { customInspect: false }), undefined);
  return (text ?? 'an error that cannot be shown: reading its members throws').slice(0, AUTHOR_TEXT_CHARS_MAX);
}

/** The `cause` of an error, if it has one that can be read. */
export function causeOf(error: unknown): unknown {
  return attempt(() => (error as { cause?: unknown } | null | undefined)?.cause, undefined);
}

function attempt<T>(read: () => T, fallback: T): T {
  try {
    return read();
  } catch {
    return fallback;
  }
}

/** Restores the error, with the class, the text and the place that it had in the host. */
export function fromThrown({ name, message, stack, text, misuse, code }: Thrown): Error {
  const error = misuse === true ? new AgentMisuse(message) : new Error(message);
  if (misuse !== true) Object.defineProperty(error, 'name', { value: name, configurable: true });
  error.stack = stack;
  return Object.assign(error, { [inspect.custom]: () => text, ...(code !== undefined && { code }) });
}
