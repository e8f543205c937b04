import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RateLimit } from './rate-limit.ts';

test('the limit holds within a second and is reset in the next one', () => {
  let nowMs = 5_000;
  const limit = new RateLimit(3, () => nowMs);
  const takes = () => Array.from({ length: 4 }, () => limit.take());
  assert.deepEqual(takes(), [true, true, true, false]);
  nowMs += 999;
  assert.equal(limit.take(), false);
  nowMs += 1;
  assert.deepEqual(takes(), [true, true, true, false]);
});
