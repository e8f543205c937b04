import { AsyncLocalStorage } from 'node:async_hooks';

/** Calls of `tool`, `step` and `model` without `yield*`, keyed by the generator that each call returned. */
type UnstartedCalls = Map<object, UnstartedCall>;

/** `kind`: the function. `name`: its first argument, if that is a name. */
export type UnstartedCall = { kind: 'tool' | 'step' | 'model'; name?: unknown };

const KEY = Symbol.for('hopline.unstarted-calls');
const shared = globalThis as { [KEY]?: AsyncLocalStorage<UnstartedCalls> };
shared[KEY] ??= new AsyncLocalStorage();

/**
 * The calls of the turn whose code is running. A call does not name its turn, and a process runs several turns at the same time. Registered
 * globally, because the author's module may have its own copy of this package.
 */
export const unstartedCalls: AsyncLocalStorage<UnstartedCalls> = shared[KEY];
