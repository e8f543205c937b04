import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until, untilTick } from './until.ts';

test('until resolves with what was found, even when it is 0 or empty', async () => {
  const results = [null, undefined, false, 0];
  assert.equal(await until(() => results.shift()), 0);
  assert.equal(await until(async () => ''), '');
});

test('until fails at its limit and names what it waited for', async () => {
  await assert.rejects(
    until(() => false, 'the end', 20),
    /^AssertionError \[ERR_ASSERTION\]: the end: not within 20 ms$/,
  );
  let looks = 0;
  await assert.rejects(
    until(
      () => ++looks < 0,
      () => `after ${looks} looks`,
      20,
    ),
    /after \d+ looks: not within/,
  );
  await assert.rejects(
    until(() => looks < 0, undefined, 1),
    /looks < 0: not within 1 ms/,
  );
});

test('until rejects with the error that its condition throws', async () => {
  await assert.rejects(
    until(() => {
      throw new Error('lost');
    }),
    /lost/,
  );
});

test('untilTick looks in every turn of the event loop, even under mocked timers, and fails at its limit', async t => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  let looks = 0;
  setImmediate(() => (looks = 10));
  assert.equal(await untilTick(() => ++looks > 10), true);
  await assert.rejects(
    untilTick(() => looks < 0, undefined, 1),
    /looks < 0: not within 1 ms/,
  );
});
