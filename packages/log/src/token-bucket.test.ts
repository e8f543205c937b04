import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TokenBucket } from './token-bucket.ts';

test('a full bucket gives its burst at once, then its rate per second', () => {
  const bucket = new TokenBucket({ perSecond: 8, burst: 5 }, 0);
  for (let n = 1; n <= 5; n += 1) {
    assert.equal(bucket.waitMs(1, 0), 0);
    bucket.take(1, 0);
  }
  assert.equal(bucket.waitMs(1, 0), 125);
  assert.deepEqual([bucket.waitMs(2, 125), bucket.waitMs(1, 125)], [125, 0]);
  assert.equal(bucket.isFull(500), false);
  assert.equal(bucket.isFull(625), true);
  bucket.take(5, 60_000);
  assert.equal(bucket.waitMs(1, 60_000), 125, 'a long pause fills it once');
});

test('a full bucket grants more than its burst, and a forced debt must be repaid first', () => {
  const bucket = new TokenBucket({ perSecond: 1, burst: 10 }, 0);
  assert.equal(bucket.waitMs(25, 0), 0);
  bucket.take(25, 0);
  assert.equal(bucket.waitMs(1, 0), 16_000);
  assert.equal(bucket.waitMs(1, 16_000), 0);
});
