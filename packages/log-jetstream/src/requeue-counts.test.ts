import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type KeyValue, LogConflict } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { RequeueCounts, type RequeueEntry } from './requeue-counts.ts';

const ITEM = { role: 'agent.files', taskId: 't1', seq: 7 } as const;
/** Uses an arbitrary bucket of the in-memory log, because the type of its values does not matter. */
const bucket = () => createMemoryLog().leases as unknown as KeyValue<RequeueEntry>;

test('each delivery counts once, and no longer counts after a later delivery', async () => {
  const counts = new RequeueCounts(bucket());
  assert.equal(await counts.begin(ITEM, 2), 0);
  for (const delivery of [2, 2, 4, 3, 4]) await counts.increment(ITEM, delivery);
  assert.equal(await counts.begin(ITEM, 5), 2);
  assert.equal(await counts.begin({ ...ITEM, seq: 8 }, 2), 0);
});

test('deliveries count as attempts only if they began in a worker', async () => {
  const counts = new RequeueCounts(bucket());
  assert.equal(await counts.begin(ITEM, 4), 2, 'deliveries 2 and 3 were lost');
  assert.equal(await counts.begin(ITEM, 5), 2, 'delivery 4 began, and its worker died');
  await counts.increment(ITEM, 5);
  assert.equal(await counts.begin(ITEM, 6), 3, 'delivery 5 was requeued');
  assert.equal(await counts.begin(ITEM, 8), 4, 'delivery 7 was lost');
});

test('a delivery that begins late does not change later ones', async () => {
  const counts = new RequeueCounts(bucket());
  await counts.increment(ITEM, 4);
  assert.equal(await counts.begin(ITEM, 3), 1);
  await counts.increment(ITEM, 4);
  assert.equal(await counts.begin(ITEM, 6), 2, 'delivery 4 counted once, 5 was lost');
  assert.equal(await counts.begin(ITEM, 5), 2);
  assert.equal(await counts.begin(ITEM, 7), 2, 'delivery 6 began');
});

test('a worker sees a later delivery only after it has begun elsewhere, not when it was merely sent', async () => {
  const counts = new RequeueCounts(bucket());
  assert.equal(await counts.hasBegunAfter(ITEM, 1), false);
  await counts.increment(ITEM, 3);
  assert.equal(await counts.hasBegunAfter(ITEM, 1), false, 'delivery 3 was returned by a worker that stops');
  await counts.begin(ITEM, 4);
  assert.deepEqual([await counts.hasBegunAfter(ITEM, 1), await counts.hasBegunAfter(ITEM, 4)], [true, false]);
});

test('with two concurrent writers no count is lost, and a permanent conflict rejects', async () => {
  const shared = bucket();
  const [one, other] = [new RequeueCounts(shared), new RequeueCounts(shared)];
  await Promise.all([one.increment(ITEM, 1), other.increment(ITEM, 2)]);
  assert.ok([1, 2].includes(await one.begin(ITEM, 3)), 'the later delivery may be counted first');
  const hostile = { ...shared, get: async () => undefined, create: async () => Promise.reject(new LogConflict('taken')) };
  await assert.rejects(new RequeueCounts(hostile as KeyValue<RequeueEntry>).increment(ITEM, 3), LogConflict);
  assert.equal(await new RequeueCounts(hostile as KeyValue<RequeueEntry>).begin(ITEM, 2), 0, 'the attempt begins all the same');
});

test('an invalid entry counts as zero', async () => {
  const key = 'agent.files.t1.7';
  const invalid = [{ count: 5, deliveries: 2 }, { count: -1, deliveries: 2 }, { count: 'x', deliveries: 2 }, {}];
  for (const value of [...invalid, { count: 0, deliveries: 1, begun: 'x' }]) {
    const shared = bucket();
    await shared.put(key, value as RequeueEntry);
    assert.equal(await new RequeueCounts(shared).begin(ITEM, 2), 0);
    await shared.put(key, value as RequeueEntry);
    await new RequeueCounts(shared).increment(ITEM, 4);
    assert.equal(await new RequeueCounts(shared).begin(ITEM, 5), 1);
  }
});
