import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type KeyValue, LogConflict } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { type HandBackEntry, HandBacks } from './requeues.ts';

const ITEM = { role: 'agent.files', taskId: 't1', seq: 7 } as const;
/** A bucket of the log's twin: what is in it does not matter to a bucket. */
const bucket = () => createMemoryLog().leases as unknown as KeyValue<HandBackEntry>;

test('each delivery counts once, and one that a later one has followed not at all', async () => {
  const handBacks = new HandBacks(bucket());
  assert.equal(await handBacks.count(ITEM), 0);
  for (const delivery of [1, 1, 3, 2, 3]) await handBacks.note(ITEM, delivery);
  assert.equal(await handBacks.count(ITEM), 2);
  assert.equal(await handBacks.count({ ...ITEM, seq: 8 }), 0);
});

test('two workers that hand back at the same time lose no count, and an endless rival is given up', async () => {
  const shared = bucket();
  const [one, other] = [new HandBacks(shared), new HandBacks(shared)];
  await Promise.all([one.note(ITEM, 1), other.note(ITEM, 2)]);
  assert.ok([1, 2].includes(await one.count(ITEM)), 'the later may have been first');
  const hostile = { ...shared, get: async () => undefined, create: async () => Promise.reject(new LogConflict('taken')) };
  await assert.rejects(new HandBacks(hostile as KeyValue<HandBackEntry>).note(ITEM, 3), LogConflict);
});

test('what somebody else wrote into the bucket counts as nothing', async () => {
  const shared = bucket();
  const key = 'agent.files.t1.7';
  for (const value of [{ count: 5, deliveries: 2 }, { count: -1, deliveries: 2 }, { count: 'x', deliveries: 2 }, {}]) {
    await shared.put(key, value as HandBackEntry);
    assert.equal(await new HandBacks(shared).count(ITEM), 0);
  }
  await new HandBacks(shared).note(ITEM, 4);
  assert.equal(await new HandBacks(shared).count(ITEM), 1);
});
