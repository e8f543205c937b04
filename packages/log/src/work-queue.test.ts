import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Work } from '@hopline/events';
import { factRecord } from './records.test-kit.ts';
import { deliveriesMax, newestForJob, purposeOf, SETTLE_DELIVERIES_MAX, WORK_NEWEST_MS_MAX } from './work-queue.ts';

const BOUNDS = { attemptsMax: 3, requeuesMax: 30 };
/** Purposes of all deliveries of an item of which the first `requeues` deliveries are requeued and the others fail. */
const purposes = (requeues: number) =>
  Array.from({ length: deliveriesMax(BOUNDS) }, (_, index) => purposeOf(index + 1, Math.min(index, requeues), BOUNDS));
const count = (list: string[], purpose: string) => list.filter(one => one === purpose).length;

test('a worker begins with the record in an item if both were stored a moment ago', () => {
  const now = Date.now();
  const long = now - WORK_NEWEST_MS_MAX - 1;
  const work = (at: number) => {
    const record = factRecord('t', 1, 0);
    return { newest: { seq: 1, record: { ...record, aggregate: { ...record.aggregate, at } } } } as unknown as Work;
  };
  const fresh = work(now);
  assert.deepEqual(newestForJob(fresh, 1, now), { newest: fresh.newest });
  assert.deepEqual(newestForJob(fresh, 2, now), {}, 'delivered again');
  assert.deepEqual(newestForJob(fresh, 1, long), {}, 'the item has waited');
  const ahead = now + WORK_NEWEST_MS_MAX + 60_000;
  assert.deepEqual(newestForJob(work(ahead), 1, ahead), {}, 'of a clock that is ahead, no age is known');
  assert.deepEqual(newestForJob(work(long), 1, now), {}, 'the request was held, or followed the record late');
});

test('failures are bounded by attemptsMax, independent of earlier requeues', () => {
  for (const requeues of [0, 1, 29, 30]) {
    const list = purposes(requeues);
    assert.equal(count(list, 'run'), BOUNDS.attemptsMax + requeues);
    assert.equal(count(list, 'settle'), SETTLE_DELIVERIES_MAX);
    assert.equal(list.lastIndexOf('run'), BOUNDS.attemptsMax + requeues - 1, 'settlement follows the last attempt');
  }
});

test('requeues are bounded by requeuesMax: each one after that counts as an attempt', () => {
  const list = purposes(1_000);
  assert.equal(count(list, 'run'), BOUNDS.attemptsMax + BOUNDS.requeuesMax);
  assert.equal(purposeOf(31, 30, BOUNDS), 'run');
  assert.equal(purposeOf(33, 32, BOUNDS), 'run');
  assert.equal(purposeOf(34, 33, BOUNDS), 'settle');
  assert.equal(list.at(-1), 'settle', 'the last delivery still settles the item');
});
