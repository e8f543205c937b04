import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { backoffMs } from './backoff.ts';

test('a wait stays within its bounds after any number of failures', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000 }), failures => {
      const wait = backoffMs(failures, 50, 1_000, 10);
      assert.ok(wait >= 10 && wait <= Math.min(1_000, Math.max(10, 50 * 2 ** (failures - 1))));
    }),
  );
});
