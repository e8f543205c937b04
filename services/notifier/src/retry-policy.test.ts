import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REFUSALS_MAX, type RetryLimits, retryWaitMs, WEBHOOK_RETRY_AFTER_MS_MAX } from './retry-policy.ts';

const limits: RetryLimits = { attemptsMax: 10, retryMsBase: 1_000, retryMsMax: 60_000, abandonAfterMs: 3_600_000 };
const NOW = 1_000_000;
const failed = (failures: number, more: Partial<Parameters<typeof retryWaitMs>[0]> = {}) =>
  retryWaitMs({ failures, failingSince: NOW, retry: 'normal', ...more }, limits, NOW);

test('the wait is random, doubles, and has an upper bound [S3-25]', () => {
  for (const [failures, edgeMs] of [
    [1, 1_000],
    [2, 2_000],
    [6, 32_000],
    [7, 60_000],
    [9, 60_000],
  ] as const) {
    const waits = Array.from({ length: 300 }, () => failed(failures)!);
    assert.ok(Math.max(...waits) <= edgeMs + 1 && Math.min(...waits) >= 0, `${failures}`);
    // Full jitter draws from both halves of the range: 300 draws miss one of them once in 10^90.
    assert.ok(Math.max(...waits) > edgeMs / 2 && Math.min(...waits) < edgeMs / 2, `${failures}`);
  }
});

test('the failure of the last allowed attempt abandons the webhook [S3-25]', () => {
  assert.notEqual(failed(limits.attemptsMax - 1), undefined);
  assert.equal(failed(limits.attemptsMax), undefined);
});

test('a refusal gets fewer attempts, and a permanent failure is not retried', () => {
  assert.notEqual(failed(REFUSALS_MAX - 1, { retry: 'limited' }), undefined);
  assert.equal(failed(REFUSALS_MAX, { retry: 'limited' }), undefined);
  assert.equal(retryWaitMs({ failures: 2, failingSince: NOW, retry: 'limited' }, { ...limits, attemptsMax: 2 }, NOW), undefined);
  assert.equal(failed(1, { retry: 'never' }), undefined);
});

test('Retry-After is respected, up to an hour', () => {
  assert.equal(failed(1, { retryAfterMs: 30_000 }), 30_000);
  assert.equal(failed(1, { retryAfterMs: 999 * WEBHOOK_RETRY_AFTER_MS_MAX }), WEBHOOK_RETRY_AFTER_MS_MAX);
});

test('a webhook that fails for too long is abandoned, whatever the number of attempts', () => {
  assert.notEqual(failed(1, { failingSince: NOW - limits.abandonAfterMs + 1_000 }), undefined);
  assert.equal(failed(1, { failingSince: NOW - limits.abandonAfterMs - 1 }), undefined);
  assert.equal(failed(1, { failingSince: NOW - 1, retryAfterMs: limits.abandonAfterMs }), undefined);
});
