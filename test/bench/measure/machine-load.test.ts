import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLoad, shareOfOthers } from './machine-load.ts';

test('the share of others is the total usage minus our own', () => {
  const before = { atS: 0, busyS: 100, ownS: 10 };
  assert.equal(shareOfOthers(before, { atS: 10, busyS: 115, ownS: 15 }, 2), 0.5);
  assert.equal(shareOfOthers(before, { atS: 10, busyS: 105, ownS: 15 }, 2), 0);
  assert.equal(shareOfOthers(before, { atS: 10, busyS: 104.9, ownS: 15 }, 2), 0, 'rounded ticks do not make the share negative');
  assert.equal(shareOfOthers(undefined), undefined);
});

test('the reported CPU times grow', { skip: process.platform !== 'linux' && 'requires /proc of Linux' }, () => {
  const before = readLoad()!;
  for (const until = performance.now() + 50; performance.now() < until; ) Math.sqrt(2);
  const after = readLoad()!;
  assert.ok(after.atS > before.atS && after.busyS > before.busyS && after.ownS >= before.ownS);
});
