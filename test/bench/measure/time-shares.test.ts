import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { timeShares } from './time-shares.ts';

function busyLoop(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

test('time is assigned to the function that ran, or to waiting', async () => {
  const shares = await timeShares({ busy: /^busyLoop@.*time-shares\.test/ }, async () => {
    busyLoop(150);
    await sleep(150);
  });
  assert.deepEqual(Object.keys(shares), ['busy', 'waiting', 'other']);
  assert.ok(shares.busy! > 0 && shares.waiting! > 0, JSON.stringify(shares));
  assert.ok(Math.abs(Object.values(shares).reduce((sum, share) => sum + share, 0) - 1) < 0.001);
});
