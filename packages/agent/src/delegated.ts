import type { AgentEvent } from './agent.ts';
import { AgentMisuse } from './misuse.ts';
import type { TurnRequest } from './this-turn.ts';
import { type UnstartedCall, unstartedCalls } from './unstarted-calls.ts';

/**
 * What `tool`, `step` and `model` return: a generator for `yield*`, whose events are those of the turn. Nothing runs before `yield*`,
 * and a turn that completes without it fails.
 * @public
 */
export type Delegated<T> = AsyncGenerator<AgentEvent | TurnRequest, T, unknown> & {
  /** A method that nothing can call. So TypeScript refuses `await`, and in an async function `yield` and `return` without `yield*`: they would call it. */
  readonly then: (write: never) => never;
};

/** The result of a call. Until `yield*` starts it, the turn that made the call counts it as unstarted. */
export function delegated<T>(call: UnstartedCall, events: AsyncGenerator<AgentEvent | TurnRequest, T, unknown>): Delegated<T> {
  const unstarted = unstartedCalls.getStore();
  unstarted?.set(events, call);
  const start = () => {
    unstarted?.delete(events);
    return events;
  };
  const then = (_resolve: unknown, reject: (error: unknown) => void) =>
    reject(new AgentMisuse(`write yield* before ${call.kind}(…), not await, and not yield or return without *: it has not run`));
  Object.defineProperty(events, Symbol.asyncIterator, { value: start });
  return Object.defineProperty(events, 'then', { value: then }) as Delegated<T>;
}
