import type { AgentEvent } from './agent.ts';
import { AgentMisuse } from './misuse.ts';
import type { TurnRequest } from './this-turn.ts';

/**
 * What `tool`, `step` and `model` return: a generator for `yield*`, whose events are those of the turn. Nothing runs before `yield*`.
 * @public
 */
export type Delegated<T> = AsyncGenerator<AgentEvent | TurnRequest, T, unknown> & {
  /** Makes TypeScript refuse `await`, and `yield` and `return` of an async function without `yield*`, all of which call it. */
  readonly then: (write: never) => never;
};

/** `call`: as the author writes it, e.g. `step(…)`. */
export function delegated<T>(call: string, events: AsyncGenerator<AgentEvent | TurnRequest, T, unknown>): Delegated<T> {
  const then = (_resolve: unknown, reject: (error: unknown) => void) =>
    reject(new AgentMisuse(`write yield* before ${call}, not await, and not yield or return without *: it has not run`));
  return Object.defineProperty(events, 'then', { value: then }) as Delegated<T>;
}
