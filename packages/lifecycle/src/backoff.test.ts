import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { backoffMs, type RetryOptions, retry } from './backoff.ts';

const options = (given: Partial<RetryOptions> = {}): RetryOptions => ({
  attemptsMax: 3,
  baseMs: 1,
  capMs: 4,
  totalMsMax: 10_000,
  signal: new AbortController().signal,
  ...given,
});
const fails = (attempts: number[]) => (attempt: number) => {
  attempts.push(attempt);
  return Promise.reject(new Error(`attempt ${attempt}`));
};

test('the first success is the result', async () => {
  const attempts: number[] = [];
  const result = await retry(async attempt => {
    attempts.push(attempt);
    if (attempt < 3) throw new Error('not yet');
    return 'done';
  }, options());
  assert.deepEqual([result, attempts], ['done', [1, 2, 3]]);
});

test('attemptsMax holds at its edge and the last error is the one thrown', async () => {
  for (const attemptsMax of [1, 3]) {
    const attempts: number[] = [];
    await assert.rejects(retry(fails(attempts), options({ attemptsMax })), { message: `attempt ${attemptsMax}` });
    assert.equal(attempts.length, attemptsMax);
  }
});

test('an error that is not retryable ends at once', async () => {
  const attempts: number[] = [];
  const retryable = (error: unknown) => (error as Error).message !== 'attempt 2';
  await assert.rejects(retry(fails(attempts), options({ attemptsMax: 9, retryable })), { message: 'attempt 2' });
});

test('no attempt begins after totalMsMax, and no delay is slept that would end after it', async () => {
  const attempts: number[] = [];
  const started = performance.now();
  const slow = options({ attemptsMax: 1000, baseMs: 60_000, capMs: 60_000, totalMsMax: 50, random: () => 0.9 });
  await assert.rejects(retry(fails(attempts), slow), { message: 'attempt 1' });
  assert.ok(performance.now() - started < 10_000);
});

test('an abort ends the delay at once with its own reason, and no attempt follows', async () => {
  const attempts: number[] = [];
  const controller = new AbortController();
  const running = retry(fails(attempts), options({ baseMs: 60_000, capMs: 60_000, totalMsMax: 1e9, signal: controller.signal }));
  await new Promise(resolve => setImmediate(resolve));
  controller.abort(new Error('draining'));
  await assert.rejects(running, { message: 'draining' });
  assert.deepEqual(attempts, [1]);
  await assert.rejects(retry(fails(attempts), options({ signal: controller.signal })), { message: 'draining' });
  assert.deepEqual(attempts, [1]);
});

test('the delay is full jitter under min(capMs, baseMs * 2^n), also for attempts without end', () => {
  const input = fc.record({
    attempt: fc.integer({ min: 1, max: 100_000 }),
    random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  });
  fc.assert(
    fc.property(input, ({ attempt, random }) => {
      const delay = backoffMs(attempt, { baseMs: 100, capMs: 5000, random: () => random });
      assert.equal(delay, random * Math.min(5000, 100 * 2 ** (attempt - 1)));
      assert.ok(delay >= 0 && delay <= 5000);
    }),
  );
});
