import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2AError } from '@hopline/a2a';
import { createMemoryLog } from '@hopline/log/memory';
import { createLogger } from '@hopline/telemetry';
import { LIMITS, type Limits } from '../limits.ts';
import { Quotas } from './quotas.ts';

const logger = createLogger({ service: 'test', instance: 'test', level: 'silent' });
const exceeded = (error: unknown) => error instanceof A2AError && error.code === 'QUOTA_EXCEEDED';

function openQuotas(limits: Partial<Limits>): Quotas {
  const all = { ...LIMITS, ...limits };
  return new Quotas({ log: createMemoryLog(), role: 'supervisor', limits: all, metrics: undefined, logger });
}

test('a new caller may use its whole burst: one message if the burst is one, and a request of all its bytes', () => {
  const bytes = { ownerRequestBytesPerSecond: 1_024, ownerRequestBytesBurst: 32_768, bodyBytesMax: 32_768 };
  const quotas = openQuotas({ ownerMessagesPerSecond: 1, ownerMessagesBurst: 1, ...bytes });
  for (let n = 0; n < 100; n += 1) {
    const caller = { tenant: `${n}`, subject: 'anna' };
    assert.doesNotThrow(() => quotas.takeMessage(caller));
    assert.doesNotThrow(() => quotas.takeBytes({ subject: `${n}` }, 32_768, false));
  }
});

test('a caller’s usage is not dropped, however many other callers follow', () => {
  const messages = { ownerMessagesPerSecond: 0.001, ownerMessagesBurst: 1 };
  const quotas = openQuotas({ streamsMax: 10, ownerStreamsMax: 2, ...messages });
  const [anna, bert] = [{ subject: 'anna' }, { subject: 'bert' }];
  const releases = [quotas.acquire(anna, 'stream'), quotas.acquire(anna, 'stream')];
  quotas.takeMessage(bert);
  for (let n = 0; n < 25_000; n += 1) quotas.acquire({ subject: `${n}` }, 'request')();
  assert.throws(() => quotas.acquire(anna, 'stream'), exceeded);
  assert.throws(() => quotas.takeMessage(bert), exceeded);
  for (const release of releases) release();
  quotas.acquire(anna, 'stream')();
});

test('event streams share the budgets of their caller and its tenant; without authentication they have no limit', () => {
  const quotas = openQuotas({ ownerSentBytesPerSecond: 1, ownerSentBytesBurst: 100, tenantLimitFactor: 2 });
  const [anna, bert, carl] = ['anna', 'bert', 'carl'].map(subject => ({ tenant: 't', subject }));
  // A time after the creation of all token buckets.
  const nowMs = performance.now() + 60_000;
  assert.equal(quotas.sentBudget(anna!)!.spend(100, nowMs), 0);
  assert.equal(quotas.sentBudget(anna!)!.spend(50, nowMs), 50_000);
  assert.equal(quotas.sentBudget(bert!)!.spend(60, nowMs), 5_000, 'the tenant has 200, and 2 a second');
  assert.equal(quotas.sentBudget(carl!)!.waitMs(nowMs), 5_000);
  assert.equal(quotas.sentBudget({ subject: 'anna' })!.waitMs(nowMs), 0);
  assert.equal(quotas.sentBudget({}), undefined);
});
