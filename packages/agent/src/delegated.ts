import type { AgentEvent } from './agent.ts';
import { AgentMisuse } from './misuse.ts';
import type { TurnRequest } from './this-turn.ts';
import { type UnstartedCall, unstartedCalls } from './unstarted-calls.ts';

/**
 * The return value of `tool`, `step` and `model`: a generator for `yield*`, whose events become events of the turn. Nothing runs before
 * `yield*`, and a turn that completes without it fails.
 * @public
 */
export type Delegated<T> = AsyncGenerator<AgentEvent | TurnRequest, T, unknown> & {
  /**
   * A method that cannot be called. It makes TypeScript refuse `await` and, in an async function, `yield` and `return` without `*`, because
   * they would call it.
   */
  readonly then: (write: never) => never;
};

/** The result of a call. The turn that made the call counts it as unstarted until `yield*` starts it. */
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
