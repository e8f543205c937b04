import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deliveriesMax, purposeOf, SETTLE_DELIVERIES_MAX } from './work-queue.ts';

const BOUNDS = { attemptsMax: 3, requeuesMax: 30 };
/** Deliveries of an item of which `requeues` come first and are handed back, and the rest fail. */
const purposes = (requeues: number) =>
  Array.from({ length: deliveriesMax(BOUNDS) }, (_, index) => purposeOf(index + 1, Math.min(index, requeues), BOUNDS));
const count = (list: string[], purpose: string) => list.filter(one => one === purpose).length;

test('failures are bounded by attemptsMax, whatever was handed back before', () => {
  for (const requeues of [0, 1, 29, 30]) {
    const list = purposes(requeues);
    assert.equal(count(list, 'run'), BOUNDS.attemptsMax + requeues);
    assert.equal(count(list, 'settle'), SETTLE_DELIVERIES_MAX);
    assert.equal(list.lastIndexOf('run'), BOUNDS.attemptsMax + requeues - 1, 'settled after all attempts');
  }
});

test('hand-backs are bounded by requeuesMax: the one after the last counts as an attempt', () => {
  const list = purposes(1_000);
  assert.equal(count(list, 'run'), BOUNDS.attemptsMax + BOUNDS.requeuesMax);
  assert.equal(purposeOf(31, 30, BOUNDS), 'run');
  assert.equal(purposeOf(33, 32, BOUNDS), 'run');
  assert.equal(purposeOf(34, 33, BOUNDS), 'settle');
  assert.equal(list.at(-1), 'settle', 'the last of all deliveries is still good for an end');
});
