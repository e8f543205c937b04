import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Owner } from '@hopline/events';
import {
  bytesFrom,
  isTenantBytes,
  LogUnavailable,
  type TaskIndexEntry,
  TENANT_BYTES_BEGUN,
  tenantBytesFilter,
} from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { logger, recordsOf, relayOn, sendMessage, storedWhen, write, writerOf } from './relay.test-kit.ts';
import { TenantBytesWrites } from './tenant-bytes-writes.ts';

const ANNA = { tenant: 't', subject: 'anna' };
const BERT = { tenant: 't', subject: 'bert' };
const CARL = { subject: 't' };
const COMPLETED = { kind: 'status', state: 'TASK_STATE_COMPLETED' } as const;
const LOG_BYTES = 256 * 40_000;

/** Bytes that are counted for the tenant of an owner. */
async function counted(log: MemoryLog, owner: Owner, firstSeq = 1): Promise<number> {
  const entries = await log.taskLists.match([tenantBytesFilter(owner)!]);
  return entries.reduce((sum, { value }) => sum + (isTenantBytes(value) ? bytesFrom(value.stored, firstSeq) : 0), 0);
}

function entry(owner: Owner, { bytes, seq, startSeq = 1 }: { bytes: number; seq: number; startSeq?: number }): TaskIndexEntry {
  const common = { contextId: 'c', role: 'agent.echo', state: COMPLETED.state, generation: 1, at: 1 } as const;
  return { ...common, owner, startSeq, seq, storedBytes: bytes };
}

test('a relay that stops has counted all records of its tasks, together for the callers of a tenant', async () => {
  const log = createMemoryLog({ factsBytesMax: LOG_BYTES });
  const relay = await relayOn(log);
  for (const [taskId, owner] of Object.entries({ a: ANNA, b: BERT, c: CARL, d: undefined })) {
    await sendMessage(log, taskId, owner && { owner });
    await write(writerOf(log, { taskId }), COMPLETED);
    await storedWhen(log, ({ aggregate }) => aggregate.state === COMPLETED.state, taskId);
  }
  await relay.stop();
  const stored = async (taskId: string) =>
    (await recordsOf(log, taskId)).reduce((sum, { record }) => sum + Buffer.byteLength(JSON.stringify(record)), 0);
  assert.equal(await counted(log, ANNA), (await stored('a')) + (await stored('b')));
  assert.equal(await counted(log, CARL), await stored('c'));
});

test('several relays add to the same entry, and bytes that could not be written are written later', async () => {
  const log = createMemoryLog({ factsBytesMax: LOG_BYTES });
  const relays = [1, 2, 3].map(() => new TenantBytesWrites({ log, logger }));
  for (const [n, relay] of relays.entries()) relay.add('a', ANNA, { seq: n + 1, bytes: 100 });
  await Promise.all(relays.map(relay => relay.stop()));
  assert.equal(await counted(log, ANNA), 300);
  let isAway = true;
  const update: MemoryLog['taskLists']['update'] = async (...write) => {
    if (isAway) throw new LogUnavailable('away');
    return log.taskLists.update(...write);
  };
  const get = (key: string) => log.taskLists.get(key);
  const away = new TenantBytesWrites({ log: { ...log, taskLists: { get, update } as MemoryLog['taskLists'] }, logger });
  away.add('a', ANNA, { seq: 4, bytes: 10 });
  const first = await away.write(0);
  isAway = false;
  await away.stop();
  assert.deepEqual([first, await counted(log, ANNA)], [false, 310]);
});

test('few bytes wait, many are written at once, and spans whose records are gone are removed', async () => {
  const log = createMemoryLog({ factsBytesMax: LOG_BYTES });
  const writes = new TenantBytesWrites({ log, logger });
  writes.add('a', ANNA, { seq: 1, bytes: LOG_BYTES / 256 - 1 });
  await writes.write(60_000);
  assert.equal(await counted(log, ANNA), 0);
  writes.add('a', ANNA, { seq: 2, bytes: 1 });
  await writes.write(60_000);
  assert.equal(await counted(log, ANNA), LOG_BYTES / 256);
  await writes.stop();
});

test('tasks that were stored before relays counted are entered once, without those whose records are gone', async () => {
  const log = createMemoryLog({ factsBytesMax: LOG_BYTES, shards: 1 });
  await sendMessage(log, 'now');
  const relay = await relayOn(log);
  await storedWhen(log, () => true, 'now');
  await relay.stop();
  const { lastSeq } = await log.facts.extent();
  await log.tasks.put('before', entry(ANNA, { bytes: 1_000, seq: lastSeq }));
  await log.tasks.put('later', entry(ANNA, { bytes: 7, seq: lastSeq + 2, startSeq: lastSeq + 1 }));
  await log.tasks.put('gone', entry(BERT, { bytes: 500, seq: 0 }));
  for (let process = 1; process <= 2; process += 1) {
    const writes = new TenantBytesWrites({ log: log.another(), logger });
    // The index may know the record before its bytes have been written.
    await log.tasks.put('x', entry(ANNA, { bytes: 20 * process, seq: lastSeq + process, startSeq: 1 }));
    writes.add('x', ANNA, { seq: lastSeq + process, bytes: 20 });
    await writes.write(0);
    await writes.stop();
    assert.equal(await counted(log, ANNA), 1_000 + 20 * process);
  }
  // The bucket was lost, or has removed the entry that shows that the first reading is done.
  await log.taskLists.purge(TENANT_BYTES_BEGUN, Number.MAX_SAFE_INTEGER);
  const writes = new TenantBytesWrites({ log, logger });
  await log.tasks.delete('x');
  writes.add('y', CARL, { seq: lastSeq + 3, bytes: 1 });
  await writes.stop();
  assert.equal(await counted(log, ANNA), 1_040, 'later records stay counted');
});

test('without a byte limit of the log nothing is counted', async () => {
  const log = createMemoryLog();
  const writes = new TenantBytesWrites({ log, logger });
  writes.add('a', ANNA, { seq: 1, bytes: 100 });
  await writes.stop();
  assert.deepEqual(await log.taskLists.match(['*.*.stored']), []);
});
