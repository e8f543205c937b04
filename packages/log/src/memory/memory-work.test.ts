import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workItem } from '../records.test-kit.ts';
import { REDELIVERY_MS_MIN } from '../work-queue.ts';
import { createMemoryLog } from './memory-log.ts';

test('an item that becomes due while its worker looks for one is taken', { timeout: 120_000 }, async t => {
  const log = createMemoryLog();
  const start = 1_790_000_000_000;
  const due = start + REDELIVERY_MS_MIN;
  /** The next values of the clock; it stays at the last one. */
  let shown = [start];
  t.mock.method(Date, 'now', () => (shown.length > 1 ? shown.shift()! : shown[0]!));
  t.mock.method(Math, 'random', () => 0);
  await log.work.request('agent.a', workItem('t'), { id: 'w' });
  const stop = new AbortController();
  let deliveries = 0;
  await log.work.take('agent.a', { slots: 1, signal: stop.signal }, async () => {
    deliveries += 1;
    if (deliveries === 2) return stop.abort();
    // The item is due at `due`. The worker looks for an item one millisecond earlier, and that millisecond passes in between.
    shown = [start, due - 1, due];
    throw new Error('once');
  });
  assert.equal(deliveries, 2);
});
