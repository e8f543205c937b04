import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Owner } from '@hopline/events';
import { type TaskIndexEntry, toLogExtent } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { until } from '../../../../test/kit/until.ts';
import { BytesByTenant, StoredBytes, TENANT_GROUPS_MAX } from './stored-bytes.ts';

const ANNA = { tenant: 't', subject: 'anna' };
const BERT = { tenant: 't', subject: 'bert' };
const CARL = { subject: 't' };

type Stored = { bytes: number; seq: number; isOpen?: boolean };

function entry(owner: Owner | undefined, { bytes, seq, isOpen = false }: Stored): TaskIndexEntry {
  const state = isOpen ? 'TASK_STATE_WORKING' : 'TASK_STATE_COMPLETED';
  const common = { contextId: 'c', role: 'agent.echo', state, startSeq: 1, generation: 1, at: 1 } as const;
  return { ...common, ...(owner && { owner }), seq, storedBytes: bytes };
}

test('the tasks of all callers of a tenant count together, each by its newest entry; a caller without a tenant has a count of its own', () => {
  const counted = new BytesByTenant();
  counted.set('a', entry(ANNA, { bytes: 100, seq: 1, isOpen: true }));
  counted.set('b', entry(BERT, { bytes: 10, seq: 2 }));
  counted.set('c', entry(CARL, { bytes: 5, seq: 3 }));
  counted.set('d', entry(undefined, { bytes: 1_000, seq: 4 }));
  counted.set('a', entry(ANNA, { bytes: 300, seq: 5, isOpen: true }));
  assert.deepEqual([counted.of(ANNA), counted.of(BERT), counted.of(CARL)], [310, 310, 5]);
  counted.set('a', entry(ANNA, { bytes: 400, seq: 6 }));
  assert.equal(counted.of(ANNA), 410);
});

test('an open or ended task counts until its newest record has left the log', () => {
  const counted = new BytesByTenant();
  counted.set('a', entry(ANNA, { bytes: 100, seq: 10 }));
  counted.set('b', entry(ANNA, { bytes: 10, seq: 20, isOpen: true }));
  counted.set('c', entry(ANNA, { bytes: 1, seq: 30 }));
  const left = [10, 11, 20, 21, 30, 31].map(firstSeq => {
    counted.removeBelow(firstSeq);
    return counted.of(ANNA);
  });
  assert.deepEqual(left, [111, 11, 11, 1, 1, 0]);
});

test('many ended tasks take little memory, and at most the bytes of two groups are released late', () => {
  const tasks = TENANT_GROUPS_MAX * 50;
  const counted = new BytesByTenant();
  for (let seq = 1; seq <= tasks; seq += 1) counted.set(`${seq}`, entry(ANNA, { bytes: 10, seq }));
  assert.equal(counted.of(ANNA), tasks * 10);
  for (const removed of [0.25, 0.5, 0.75]) {
    counted.removeBelow(tasks * removed);
    const late = counted.of(ANNA) / (tasks * 10) - (1 - removed);
    assert.ok(late >= 0 && late <= 2.5 / TENANT_GROUPS_MAX, String(late));
  }
  counted.removeBelow(tasks + 1);
  assert.equal(counted.of(ANNA), 0);
});

test('a tenant is full at exactly its share of the log, also for a process that starts later', async t => {
  const log = createMemoryLog({ factsBytesMax: 1_000 });
  const open = () => {
    const stored = new StoredBytes({ log, shareMax: 0.5, onLost: error => assert.fail(String(error)) });
    t.after(() => stored.close());
    return stored;
  };
  const first = open();
  await log.tasks.put('a', entry(ANNA, { bytes: 499, seq: 1, isOpen: true }));
  await log.tasks.put('other', entry(CARL, { bytes: 500, seq: 1 }));
  await log.tasks.put('anonymous', entry(undefined, { bytes: 999, seq: 1 }));
  await until(() => first.isFull(CARL));
  assert.deepEqual([first.isFull(ANNA), first.isFull({})], [false, false]);
  await log.tasks.put('a', entry(ANNA, { bytes: 500, seq: 1, isOpen: true }));
  await until(() => first.isFull(BERT));
  const second = open();
  await until(() => second.isFull(ANNA));
});

test('a process that starts does not count tasks whose records have already left the log', async t => {
  const log = createMemoryLog();
  const facts = Object.assign(Object.create(log.facts), {
    extent: async () => toLogExtent([{ firstSeq: 10, lastSeq: 10, fill: 0.9, bytesMax: 1_000 }], log.layouts),
  });
  await log.tasks.put('gone', entry(ANNA, { bytes: 900, seq: 9 }));
  await log.tasks.put('stored', entry(CARL, { bytes: 900, seq: 10 }));
  const stored = new StoredBytes({
    log: { ...log, facts },
    shareMax: 0.5,
    onLost: error => assert.fail(String(error)),
  });
  t.after(() => stored.close());
  await until(() => stored.isFull(CARL));
  assert.equal(stored.isFull(ANNA), false);
});
