import assert from 'node:assert/strict';
import { test } from 'node:test';
import { restartDelay } from './backoff.ts';

test('the wait doubles from 0.2 s to 5 s and starts anew after 30 s of life', () => {
  const waits: number[] = [];
  for (let wait = 0; waits.length < 7; ) {
    wait = restartDelay(wait, 10);
    waits.push(wait);
  }
  assert.deepEqual(waits, [200, 400, 800, 1600, 3200, 5000, 5000]);
  assert.equal(restartDelay(5000, 29_999), 5000);
  assert.equal(restartDelay(5000, 30_000), 200);
});
