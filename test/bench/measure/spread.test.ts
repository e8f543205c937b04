import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { latencyOf, percentile, spreadOf } from './spread.ts';

const numbers = fc.array(fc.double({ noNaN: true, min: -1e9, max: 1e9 }), { minLength: 1, maxLength: 200 });

test('a percentile is the smallest value that the given share does not exceed', () => {
  fc.assert(
    fc.property(numbers, fc.double({ min: 0, max: 100, noNaN: true }), (values, percent) => {
      const sorted = Float64Array.from(values).sort();
      const found = percentile(sorted, percent);
      const share = (bound: (value: number) => boolean) => (100 * values.filter(bound).length) / values.length;
      assert.ok(values.includes(found));
      assert.ok(share(value => value <= found) >= percent - 1e-9);
      if (found !== sorted[0]) assert.ok(share(value => value < found) < percent);
    }),
  );
});

test('known percentiles', () => {
  const hundred = Float64Array.from({ length: 100 }, (_, index) => index + 1);
  assert.deepEqual(
    [0, 1, 50, 99, 99.5, 100].map(percent => percentile(hundred, percent)),
    [1, 1, 50, 99, 100, 100],
  );
});

test('the spread does not depend on the order of the rounds', () => {
  fc.assert(
    fc.property(numbers, values => {
      const spread = spreadOf(values);
      assert.deepEqual(spreadOf(values.toReversed()), spread);
      assert.ok(spread.min <= spread.median && spread.median <= spread.max);
      assert.equal(spread.rounds, values.length);
    }),
  );
  assert.deepEqual(spreadOf([3, 1, 2]), { min: 1, median: 2, max: 3, rounds: 3 });
});

test('an empty measurement is an error, not a zero', () => {
  assert.throws(() => spreadOf([]), RangeError);
  assert.throws(() => latencyOf(new Float64Array()), RangeError);
  assert.throws(() => percentile(Float64Array.of(1), 101), RangeError);
});
