import { type TestContext, test } from 'node:test';
import { setFastPaths } from './fast-paths.ts';

/** One test with the fast paths, and one of the same claim without them. */
export function testBothWays(title: string, run: (t: TestContext) => Promise<void> | void): void {
  for (const isOn of [true, false])
    test(`${title}, with fast paths ${isOn ? 'on' : 'off'}`, async t => {
      setFastPaths(isOn);
      t.after(() => setFastPaths(true));
      await run(t);
    });
}
