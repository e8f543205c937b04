import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type KeyValue, LogConflict } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { RequeueCounts, type RequeueEntry } from './requeues.ts';

const ITEM = { role: 'agent.files', taskId: 't1', seq: 7 } as const;
/** Any bucket of the memory twin: the type of its values does not matter. */
const bucket = () => createMemoryLog().leases as unknown as KeyValue<RequeueEntry>;

test('each delivery counts once; a delivery that a later one has followed does not count', async () => {
  const counts = new RequeueCounts(bucket());
  assert.equal(await counts.count(ITEM), 0);
  for (const delivery of [1, 1, 3, 2, 3]) await counts.increment(ITEM, delivery);
  assert.equal(await counts.count(ITEM), 2);
  assert.equal(await counts.count({ ...ITEM, seq: 8 }), 0);
});

test('two concurrent writers lose no count, and a permanent conflict rejects', async () => {
  const shared = bucket();
  const [one, other] = [new RequeueCounts(shared), new RequeueCounts(shared)];
  await Promise.all([one.increment(ITEM, 1), other.increment(ITEM, 2)]);
  assert.ok([1, 2].includes(await one.count(ITEM)), 'the later delivery may be counted first');
  const hostile = { ...shared, get: async () => undefined, create: async () => Promise.reject(new LogConflict('taken')) };
  await assert.rejects(new RequeueCounts(hostile as KeyValue<RequeueEntry>).increment(ITEM, 3), LogConflict);
});

test('an invalid entry counts as zero', async () => {
  const shared = bucket();
  const key = 'agent.files.t1.7';
  for (const value of [{ count: 5, deliveries: 2 }, { count: -1, deliveries: 2 }, { count: 'x', deliveries: 2 }, {}]) {
    await shared.put(key, value as RequeueEntry);
    assert.equal(await new RequeueCounts(shared).count(ITEM), 0);
  }
  await new RequeueCounts(shared).increment(ITEM, 4);
  assert.equal(await new RequeueCounts(shared).count(ITEM), 1);
});
