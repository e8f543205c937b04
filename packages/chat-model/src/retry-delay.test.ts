import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MODEL_RETRY_AFTER_MS_MAX, RETRY_MS_BASE, RETRY_MS_MAX } from './limits.ts';
import { providerDelayMs, retryDelayMs } from './retry-delay.ts';

test('the delay of a provider is in milliseconds, else that of Retry-After by the clock of the provider', () => {
  const now = Date.parse('2026-11-21T10:00:00Z');
  const asked = 'Sat, 21 Nov 2026 10:00:05 GMT';
  assert.equal(providerDelayMs({ 'retry-after-ms': '250', 'retry-after': '9' }, now), 250);
  for (const ms of ['', 'x', '-1']) assert.equal(providerDelayMs({ 'retry-after-ms': ms, 'retry-after': '2' }, now), 2_000, ms);
  assert.equal(providerDelayMs({ 'retry-after': asked }, now), 5_000);
  assert.equal(providerDelayMs({ 'retry-after': asked, date: 'Sat, 21 Nov 2026 09:59:05 GMT' }, now), 60_000);
  assert.equal(providerDelayMs({ 'retry-after': '' }, now), undefined);
  assert.equal(providerDelayMs({}, now), undefined);
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
