import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MODEL_RETRY_AFTER_MS_MAX, RETRY_MS_BASE, RETRY_MS_MAX } from './limits.ts';
import { retryAfterMs, retryDelayMs } from './retry-delay.ts';

test('Retry-After is read in seconds, as a date and in milliseconds; a garbled one counts as absent', () => {
  const now = Date.parse('2026-11-21T10:00:00Z');
  assert.equal(retryAfterMs({ 'retry-after': '2' }, now), 2_000);
  assert.equal(retryAfterMs({ 'retry-after': 'Sat, 21 Nov 2026 10:00:05 GMT' }, now), 5_000);
  assert.equal(retryAfterMs({ 'retry-after': 'Sat, 21 Nov 2026 09:00:05 GMT' }, now), 0);
  assert.equal(retryAfterMs({ 'retry-after-ms': '250', 'retry-after': '9' }, now), 250);
  assert.equal(retryAfterMs({}, now), undefined);
  assert.equal(retryAfterMs({ 'retry-after': 'soon' }, now), undefined);
});

test('a delay is jittered, grows to a bound, is at least the provider’s, and is undefined if the provider’s exceeds its bound', () => {
  assert.equal(
    retryDelayMs(1, undefined, () => 0),
    0,
  );
  assert.equal(
    retryDelayMs(1, undefined, () => 1),
    RETRY_MS_BASE,
  );
  assert.equal(
    retryDelayMs(40, undefined, () => 1),
    RETRY_MS_MAX,
  );
  assert.equal(
    retryDelayMs(1, 2_000, () => 0),
    2_000,
  );
  assert.equal(
    retryDelayMs(1, MODEL_RETRY_AFTER_MS_MAX, () => 0),
    MODEL_RETRY_AFTER_MS_MAX,
  );
  assert.equal(
    retryDelayMs(1, MODEL_RETRY_AFTER_MS_MAX + 1, () => 0),
    undefined,
  );
});
