import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Owner } from '@hopline/events';
import type { Change, KeyValue } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { until } from '../../../../test/kit/until.ts';
import { OwnerCounts, partyKeysOf } from './owner-counts.ts';

type Entry = { owner: Owner; bytes?: number };
const ENTRY_BYTES = 100;
const ANNA = { tenant: 't', subject: 'anna' };
const BERT = { tenant: 't', subject: 'bert' };

/** A bucket that removes entries without an event, as retention does. */
function silentlyExpiring(): KeyValue<Entry> {
  const bucket = createMemoryLog().pushConfigs as unknown as KeyValue<Entry>;
  const watch = bucket.watch.bind(bucket);
  const isVisible = (change: Change<Entry>) => change.type === 'ready' || change.value !== undefined;
  bucket.watch = async function* (signal) {
    for await (const change of watch(signal)) if (isVisible(change)) yield change;
  };
  return bucket;
}

function counted(bucket: KeyValue<Entry>, now: () => number) {
  const entries = new OwnerCounts({
    bucket,
    ownerOf: ({ owner }) => owner,
    bytesOf: (_key, { bytes = ENTRY_BYTES }) => bytes,
    onLost: error => assert.fail(String(error)),
    now,
  });
  const usagesOf = (owner: Owner) => Object.values(entries.counts(partyKeysOf(owner)));
  return { entries, countsOf: (owner: Owner) => usagesOf(owner).map(({ entries: count }) => count), usagesOf };
}

test('an entry counts once for its owner and its tenant, and at once if this process adds it', async t => {
  const bucket = silentlyExpiring();
  await bucket.put('task.a', { owner: ANNA });
  const { entries, countsOf } = counted(bucket, () => 0);
  t.after(() => entries.close());
  await entries.follow(15_000);
  assert.deepEqual(
    [countsOf(ANNA), countsOf(BERT), countsOf({})],
    [
      [1, 1],
      [0, 1],
      [0, 0],
    ],
  );
  entries.add('task.b', partyKeysOf(BERT), ENTRY_BYTES);
  assert.deepEqual(
    [countsOf(ANNA), countsOf(BERT)],
    [
      [1, 2],
      [1, 2],
    ],
  );
  await bucket.put('task.b', { owner: BERT });
  await bucket.put('task.c', { owner: ANNA });
  await until(() => countsOf(ANNA)[0] === 2);
  assert.deepEqual(
    [countsOf(ANNA), countsOf(BERT)],
    [
      [2, 3],
      [1, 3],
    ],
  );
});

test('an entry that retention removed, or that was never stored, stops counting when the bucket is read again', async t => {
  let nowMs = 0;
  const bucket = silentlyExpiring();
  const watch = bucket.watch.bind(bucket);
  let readings = 0;
  bucket.watch = signal => {
    readings += 1;
    return watch(signal);
  };
  await bucket.put('task.a', { owner: ANNA });
  await bucket.put('task.b', { owner: ANNA });
  const { entries, countsOf } = counted(bucket, () => nowMs);
  t.after(() => entries.close());
  await entries.follow(15_000);
  entries.add('task.never', partyKeysOf(ANNA), ENTRY_BYTES);
  await bucket.delete('task.a');
  nowMs = 59_999;
  entries.reread();
  assert.deepEqual([readings, countsOf(ANNA)], [1, [3, 3]], 'it was read a short time ago');
  nowMs = 60_000;
  entries.reread();
  await until(() => countsOf(ANNA)[0] === 1);
  assert.deepEqual(countsOf(ANNA), [1, 1]);
  await entries.follow(15_000);
  assert.equal(readings, 2, 'a bucket that is followed is not read again');
});

test('bytes are those of the newest write of each entry, also if its owner changes', async t => {
  const bucket = silentlyExpiring();
  await bucket.put('task.a', { owner: ANNA, bytes: 1_000 });
  const { entries, usagesOf } = counted(bucket, () => 0);
  t.after(() => entries.close());
  await entries.follow(15_000);
  entries.add('task.b', partyKeysOf(BERT), 50);
  entries.add('task.b', partyKeysOf(BERT), 70);
  assert.deepEqual(usagesOf(BERT), [
    { entries: 1, bytes: 70 },
    { entries: 2, bytes: 1_070 },
  ]);
  await bucket.put('task.a', { owner: BERT, bytes: 10 });
  await until(() => usagesOf(BERT)[0]?.entries === 2);
  assert.deepEqual(usagesOf(BERT), [
    { entries: 2, bytes: 80 },
    { entries: 2, bytes: 80 },
  ]);
  assert.deepEqual(usagesOf(ANNA)[0], { entries: 0, bytes: 0 });
  assert.deepEqual([entries.total, entries.bytesOf('task.a'), entries.bytesOf('task.none')], [{ entries: 2, bytes: 80 }, 10, 0]);
});
