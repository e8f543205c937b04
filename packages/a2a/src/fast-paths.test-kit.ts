import { type TestContext, test } from 'node:test';
import { setFastPaths } from './fast-paths.ts';

/** Registers two tests of the same claim, one with the fast paths and one without. */
export function testBothWays(title: string, run: (t: TestContext, isOn: boolean) => Promise<void> | void): void {
  for (const isOn of [true, false])
    test(`${title}, with fast paths ${isOn ? 'on' : 'off'}`, async t => {
      setFastPaths(isOn);
      t.after(() => setFastPaths(true));
      await run(t, isOn);
    });
}
