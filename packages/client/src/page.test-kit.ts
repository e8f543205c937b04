import type { TestContext } from 'node:test';

/** Gives Node the events of a page until the test ends. */
export function openPage(t: TestContext): EventTarget {
  const page = new EventTarget();
  const { addEventListener, removeEventListener } = globalThis as { addEventListener?: unknown; removeEventListener?: unknown };
  Object.assign(globalThis, {
    addEventListener: page.addEventListener.bind(page),
    removeEventListener: page.removeEventListener.bind(page),
  });
  t.after(() => Object.assign(globalThis, { addEventListener, removeEventListener }));
  return page;
}
