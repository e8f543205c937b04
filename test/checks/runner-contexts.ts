import hooks, { AsyncLocalStorage, AsyncResource, type createHook as CreateHook } from 'node:async_hooks';

/**
 * Node's test runner finds the test that runs some code by an async hook that is called for each promise and for its removal from memory. That takes about a tenth of
 * the CPU time of a test process. Here an AsyncLocalStorage finds it, which costs nothing for a promise. If a later runner has no such hook, this
 * module has no effect.
 */
const { createHook, executionAsyncId } = hooks;
const { runInAsyncScope } = AsyncResource.prototype;

/** Ids of the runner's tests, suites and their hooks. */
const ids = new Set<number>();
const idOfTest = new AsyncLocalStorage<number>();

/** The runner takes these functions from the module when its first test is declared. */
hooks.createHook = (callbacks: Parameters<typeof CreateHook>[0]) => {
  const { init, destroy } = callbacks;
  if (init === undefined || !String(destroy).includes('testResources')) return createHook(callbacks);
  return createHook({
    init(id, type, trigger, resource) {
      if (type !== 'Test') return;
      ids.add(id);
      init(id, type, trigger, resource);
    },
    trackPromises: false,
  });
};
hooks.executionAsyncId = () => idOfTest.getStore() ?? executionAsyncId();
AsyncResource.prototype.runInAsyncScope = function (this: AsyncResource, run, thisArg, ...args) {
  const id = this.asyncId();
  if (!ids.has(id)) return runInAsyncScope.call(this, run as () => unknown, thisArg, ...args) as ReturnType<typeof run>;
  // Inside, because the original enters the context in which the test was declared.
  const inTest = () => idOfTest.run(id, () => run.apply(thisArg!, args));
  return runInAsyncScope.call(this, inTest) as ReturnType<typeof run>;
};
