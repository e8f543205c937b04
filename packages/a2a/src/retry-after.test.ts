import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseRetryAfter } from './retry-after.ts';

const NOW_MS = Date.parse('2026-01-01T00:00:00Z');
const parse = (value: string | null | undefined, date?: string) => parseRetryAfter(value, date, NOW_MS);

test('Retry-After is seconds or a date in each form of HTTP, up to the longest timer; anything else counts as absent', () => {
  for (const [value, ms] of [
    ['0', 0],
    [' 120 ', 120_000],
    ['0.5', 500],
    ['Thu, 01 Jan 2026 00:01:00 GMT', 60_000],
    ['Thursday, 01-Jan-26 00:01:00 GMT', 60_000],
    ['Thu Jan  1 00:01:00 2026', 60_000],
    ['2026-01-01T00:01:00Z', 60_000],
    ['Thu, 01 Jan 2015 00:00:00 GMT', 0],
    ['Fri, 01 Jan 2100 00:00:00 GMT', 2 ** 31 - 1],
    ['9'.repeat(400), 2 ** 31 - 1],
  ] as const)
    assert.equal(parse(value), ms, value);
  for (const value of [
    '',
    'soon',
    'soon 5',
    '-5',
    '-1.5e',
    '1e3',
    '0x10',
    '+7',
    '1, 2',
    'Thu, later',
    'Infinity',
    null,
    undefined,
  ])
    assert.equal(parse(value), undefined, `${value}`);
});

test('a date is by the clock of the server if the response has a date', () => {
  const asked = 'Thu, 01 Jan 2026 01:01:00 GMT';
  assert.equal(parse(asked, 'Thu, 01 Jan 2026 01:00:00 GMT'), 60_000);
  for (const date of ['', 'no date', '5']) assert.equal(parse(asked, date), 3_660_000, date);
  assert.equal(parse('7', 'Thu, 01 Jan 2026 01:00:00 GMT'), 7_000);
});

test('any text is a delay that a timer can wait, or counts as absent', () => {
  const text = fc.oneof(fc.string(), fc.double().map(String), fc.date({ noInvalidDate: false }).map(String));
  fc.assert(
    fc.property(text, text, (value, date) => {
      const ms = parse(value, date);
      assert.ok(ms === undefined || (ms >= 0 && ms < 2 ** 31), `${ms}`);
    }),
  );
});
