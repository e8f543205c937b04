import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { offlineOptimum } from './offline-optimum.ts';

/** All partitions of the tokens into chunks, each sent at its last arrival. */
function bruteForce(times: readonly number[], eventCostMs: number, holdMsMax: number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let cuts = 0; cuts < 2 ** (times.length - 1); cuts++) {
    let cost = 0;
    let start = 0;
    for (let end = 1; end <= times.length; end++) {
      if (end < times.length && ((cuts >> (end - 1)) & 1) === 0) continue;
      const leavesMs = times[end - 1]!;
      if (leavesMs - times[start]! > holdMsMax) cost = Number.POSITIVE_INFINITY;
      cost += times.slice(start, end).reduce((sum, at) => sum + leavesMs - at, eventCostMs);
      start = end;
    }
    best = Math.min(best, cost);
  }
  return best;
}

const gaps = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 200 })), {
  minLength: 1,
  maxLength: 9,
});

test('the dynamic program finds the result of an exhaustive search', () => {
  const holds = fc.constantFrom(Number.POSITIVE_INFINITY, 0, 10, 100);
  fc.assert(
    fc.property(gaps, fc.integer({ min: 0, max: 400 }), holds, (list, eventCostMs, holdMsMax) => {
      let at = 0;
      const times = list.map(gap => (at += gap));
      assert.equal(offlineOptimum(times, eventCostMs, holdMsMax).cost, bruteForce(times, eventCostMs, holdMsMax));
    }),
    { numRuns: 2000, seed: 1 },
  );
});

test('a steady gap p has its known optimum: sqrt(2 K / p) tokens a chunk', () => {
  const times = Array.from({ length: 1000 }, (_, index) => 5 * index);
  assert.deepEqual(offlineOptimum(times, 250), { cost: 100 * (250 + 5 * 45), events: 100 });
});

test('the optimum of no token, one token, and simultaneous tokens', () => {
  assert.deepEqual(offlineOptimum([], 10), { cost: 0, events: 0 });
  assert.deepEqual(offlineOptimum([7], 10), { cost: 10, events: 1 });
  assert.deepEqual(offlineOptimum([7, 7, 7], 10), { cost: 10, events: 1 });
});
