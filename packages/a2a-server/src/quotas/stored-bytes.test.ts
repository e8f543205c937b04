import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Owner } from '@hopline/events';
import { changeSpans, type Log, tenantBytesKey, toLogExtent } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { StoredBytes } from './stored-bytes.ts';

const ANNA = { tenant: 't', subject: 'anna' };
const BERT = { tenant: 't', subject: 'bert' };
const CARL = { subject: 't' };

const put = (log: MemoryLog, owner: Owner, seq: number, bytes: number, group = 0) =>
  changeSpans(log.taskLists, tenantBytesKey(owner, group)!, () => [[seq, bytes]]);

function open(log: Pick<Log, 'taskLists' | 'facts' | 'layouts'>) {
  const clock = { nowMs: 0 };
  const onLost = (error: unknown) => assert.fail(String(error));
  const stored = new StoredBytes({ log, shareMax: 0.5, onLost, now: () => clock.nowMs });
  const isFull = async (caller: Owner) => {
    await stored.refresh(caller);
    return stored.isFull(caller);
  };
  return { clock, isFull };
}

test('a tenant is full at exactly its share of the log, in every server and for all its callers', async () => {
  const log = createMemoryLog({ factsBytesMax: 1_000 });
  const first = open(log);
  await put(log, ANNA, 1, 499);
  await put(log, CARL, 1, 500);
  assert.deepEqual([await first.isFull(CARL), await first.isFull(ANNA), await first.isFull({})], [true, false, false]);
  await put(log, BERT, 1, 500);
  first.clock.nowMs += 1_000;
  assert.equal(await first.isFull(ANNA), true);
  assert.equal(await open(log).isFull(BERT), true);
});

test('bytes whose records have left the log do not count', async () => {
  const log = createMemoryLog();
  const extent = async () => toLogExtent([{ firstSeq: 10, lastSeq: 10, fill: 0.9, bytesMax: 1_000 }], log.layouts);
  const { isFull } = open({ ...log, facts: Object.assign(Object.create(log.facts), { extent }) });
  await put(log, ANNA, 9, 900);
  await put(log, CARL, 10, 900);
  assert.deepEqual([await isFull(ANNA), await isFull(CARL)], [false, true]);
});

test('a server reads only the entries of the tenant that asks, at most once a second', async () => {
  const log = createMemoryLog({ factsBytesMax: 1_000 });
  const reads: string[][] = [];
  const match: Log['taskLists']['match'] = async filters => {
    reads.push([...filters]);
    return log.taskLists.match(filters);
  };
  const taskLists = Object.assign(Object.create(log.taskLists), { match });
  const { clock, isFull } = open({ ...log, taskLists });
  await Promise.all([isFull(ANNA), isFull(BERT), isFull(ANNA)]);
  clock.nowMs = 999;
  await isFull(BERT);
  assert.equal(reads.length, 1);
  clock.nowMs = 1_000;
  await isFull(BERT);
  await isFull({});
  assert.deepEqual(reads, [reads[0], reads[0]]);
});

test('while a read fails, the bytes that were read last count', async () => {
  const log = createMemoryLog({ factsBytesMax: 1_000 });
  await put(log, ANNA, 1, 500);
  let [nowMs, lost, isAway] = [0, 0, false];
  const match: Log['taskLists']['match'] = filters => {
    if (isAway) throw new Error('away');
    return log.taskLists.match(filters);
  };
  const taskLists = Object.assign(Object.create(log.taskLists), { match });
  const onLost = () => {
    lost += 1;
  };
  const stored = new StoredBytes({ log: { ...log, taskLists }, shareMax: 0.5, onLost, now: () => nowMs });
  await stored.refresh(ANNA);
  [nowMs, isAway] = [5_000, true];
  await stored.refresh(ANNA);
  await stored.refresh(ANNA);
  assert.deepEqual([stored.isFull(ANNA), lost], [true, 1]);
});
