import { AsyncLocalStorage } from 'node:async_hooks';

/** Calls of `tool`, `step` and `model` without `yield*`, by the generator that each returned. */
type UnstartedCalls = Map<object, UnstartedCall>;

/** `kind`: the function. `name`: its first argument, if that is a name. */
export type UnstartedCall = { kind: 'tool' | 'step' | 'model'; name?: unknown };

const KEY = Symbol.for('hopline.unstarted-calls');
const shared = globalThis as { [KEY]?: AsyncLocalStorage<UnstartedCalls> };
shared[KEY] ??= new AsyncLocalStorage();

/**
 * Those of the turn whose code is running: a call does not name its turn, and turns of one process run at the same time. Registered globally, because
 * the author's module may have its own copy of this package.
 */
export const unstartedCalls: AsyncLocalStorage<UnstartedCalls> = shared[KEY];
