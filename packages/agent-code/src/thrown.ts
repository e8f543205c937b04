import { inspect } from 'node:util';
import { AgentMisuse } from '@hopline/agent';
import { boundedThrown, type Thrown } from './protocol.ts';

/** An error of the code as a value of the protocol. */
export function toThrown(error: unknown): Thrown {
  const { name, message, stack = '' } = error instanceof Error ? error : new Error(typeof error);
  const { code } = (error ?? {}) as { code?: unknown };
  return boundedThrown({
    name: error instanceof Error ? String(name) : typeof error,
    message: String(message),
    stack: String(stack),
    text: inspect(error),
    ...(error instanceof AgentMisuse && { misuse: true }),
    ...(typeof code === 'string' && code.length <= 64 && { code }),
  });
}

/** The error again, with the class, the text and the place that it had in the host. */
export function fromThrown({ name, message, stack, text, misuse, code }: Thrown): Error {
  const error = misuse === true ? new AgentMisuse(message) : new Error(message);
  if (misuse !== true) Object.defineProperty(error, 'name', { value: name, configurable: true });
  error.stack = stack;
  return Object.assign(error, { [inspect.custom]: () => text, ...(code !== undefined && { code }) });
}
