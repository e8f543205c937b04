import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fullJitterMs } from './backoff.ts';

test('a wait is a share of the base, doubled per failure up to the maximum', () => {
  const longest = (failures: number) => fullJitterMs(failures, 250, 1_500, () => 1);
  assert.deepEqual([1, 2, 3, 4, 5].map(longest), [250, 500, 1_000, 1_500, 1_500]);
  assert.equal(
    fullJitterMs(3, 250, 1_500, () => 0.5),
    500,
  );
});

test('a wait stays within its bounds after any number of failures, even with a base of 0', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000 }),
      fc.integer({ min: 0, max: 1_000 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (failures, baseMs, random) => {
        const wait = fullJitterMs(failures, baseMs, 1_000, () => random);
        assert.ok(wait >= 0 && wait <= Math.min(1_000, baseMs * 2 ** (failures - 1) || 0), `${wait} ms`);
      },
    ),
  );
});
