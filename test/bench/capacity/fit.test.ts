import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { costOf, errorOf, fitLine } from './fit.ts';

const isNear = (found: number, wanted: number) =>
  assert.ok(Math.abs(found - wanted) <= 1e-6 * Math.max(1, wanted), `${found}, ${wanted}`);

test('the fit finds the line that generated the points, without an error', () => {
  const positive = fc.double({ min: 0.01, max: 100, noNaN: true });
  fc.assert(
    fc.property(positive, positive, (fixed, each) => {
      const points = [10, 20, 50].map(load => ({ load, cost: fixed + each * load }));
      const line = fitLine(points);
      isNear(line.fixed, fixed);
      isNear(line.each, each);
      for (const point of points) isNear(errorOf(line, point), 0);
    }),
  );
});

test('costs are never negative, not even for a load that is not among the points', () => {
  const cost = fc.double({ min: 0.001, max: 1000, noNaN: true });
  fc.assert(
    fc.property(cost, cost, cost, (one, two, three) => {
      const line = fitLine([one, two, three].map((value, index) => ({ load: 10 * (index + 1), cost: value })));
      assert.ok(line.fixed >= 0 && line.each >= 0 && costOf(line, 0) >= 0);
    }),
  );
});

test('points of a single load do not determine a line', () => {
  assert.throws(() => fitLine([{ load: 1, cost: 1 }]), RangeError);
  assert.throws(
    () =>
      fitLine([
        { load: 1, cost: 1 },
        { load: 1, cost: 2 },
      ]),
    RangeError,
  );
});
