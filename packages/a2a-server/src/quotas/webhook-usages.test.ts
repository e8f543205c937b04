import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Owner } from '@hopline/events';
import { type Log, putWebhookCount, webhookCountKey } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { WebhookUsages } from './webhook-usages.ts';

const MAX = { entries: 16, bytes: 16_000 };
const ONE = { entries: 1, bytes: 100 };
const ANNA = { tenant: 't', subject: 'anna' };
const BERT = { tenant: 't', subject: 'bert' };

function opened(log = createMemoryLog()) {
  let nowMs = 0;
  const usages = new WebhookUsages({ log, onLost: error => assert.fail(String(error)), now: () => nowMs });
  const stored = (owner: Owner, name: string, bytes = 100) =>
    putWebhookCount(log.pushConfigs, webhookCountKey(owner, `task.${name}`, bytes));
  const after = (ms: number) => {
    nowMs += ms;
  };
  return { log, usages, stored, after };
}

/** The reads of a bucket, and no watch of it. */
function readsOf({ pushConfigs }: Pick<Log, 'pushConfigs'>): string[] {
  const reads: string[] = [];
  const { keysUnder } = pushConfigs;
  pushConfigs.keysUnder = async prefix => {
    const keys = await keysUnder.call(pushConfigs, prefix);
    reads.push(`${keys.length} keys`);
    return keys;
  };
  pushConfigs.watch = () => assert.fail('a watch reads the webhooks of all callers');
  return reads;
}

test('for a caller near its limit, only the webhooks of its tenant are read', async () => {
  const { log, usages, stored } = opened();
  for (let n = 0; n < 2_000; n += 1) await stored({ tenant: `${n}`, subject: 'anna' }, `of-${n}`);
  await stored(ANNA, 'a');
  await stored(BERT, 'b', 300);
  await stored({ subject: 'anna' }, 'c');
  const reads = readsOf(log);
  await usages.refresh(ANNA, MAX);
  assert.deepEqual(reads, [], 'far from its limit');
  usages.add(ANNA, ONE);
  await usages.refresh(ANNA, MAX);
  assert.deepEqual(reads, ['2 keys']);
  assert.deepEqual(usages.of(ANNA), { owner: { entries: 1, bytes: 100 }, tenant: { entries: 2, bytes: 400 } });
  assert.deepEqual(usages.of({ subject: 'anna' }), { owner: { entries: 0, bytes: 0 }, tenant: undefined });
});

test('a webhook counts at once in the process that sets it, and is not counted again when the log has it', async () => {
  const { usages, stored, after } = opened();
  usages.add(ANNA, ONE);
  usages.add(ANNA, { entries: 0, bytes: 50 });
  assert.deepEqual(usages.of(ANNA).owner, { entries: 1, bytes: 150 });
  await stored(ANNA, 'a', 150);
  await usages.refresh(ANNA, MAX);
  assert.deepEqual(usages.of(ANNA).owner, { entries: 1, bytes: 150 });
  await stored(ANNA, 'of-another-process');
  after(999);
  await usages.refresh(ANNA, MAX);
  assert.equal(usages.of(ANNA).owner.entries, 1);
  after(1);
  await usages.refresh(ANNA, MAX);
  assert.equal(usages.of(ANNA).owner.entries, 2);
});

test('when two callers of a tenant read at the same time, webhooks that were added meanwhile count once', async () => {
  const { usages, stored } = opened();
  for (const [caller, name] of [
    [ANNA, 'a'],
    [BERT, 'b'],
  ] as const) {
    usages.add(caller, ONE);
    await stored(caller, name);
  }
  const reading = [ANNA, BERT].map(caller => usages.refresh(caller, MAX));
  usages.add(BERT, ONE);
  await Promise.all(reading);
  assert.equal(usages.of(ANNA).tenant?.entries, 3);
  assert.deepEqual([usages.of(ANNA).owner.entries, usages.of(BERT).owner.entries], [1, 2]);
});

test('while a read fails, the usage that was read last counts', async () => {
  const faults: unknown[] = [];
  const log = createMemoryLog();
  const usages = new WebhookUsages({ log, onLost: error => faults.push(error) });
  usages.add(ANNA, ONE);
  await log.close();
  await usages.refresh(ANNA, MAX);
  assert.deepEqual([faults.length, usages.of(ANNA).owner.entries], [1, 1]);
});
