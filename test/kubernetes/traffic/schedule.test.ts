import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAULT_KINDS, FAULT_NAMES } from './fault-kinds.ts';
import { drawSchedule, fits } from './schedule.ts';

function first(count: number, seed: number) {
  const schedule = drawSchedule(seed);
  return Array.from({ length: count }, () => schedule.next().value);
}

test('each round of the schedule has every kind of fault once, with a quiet time before it', () => {
  const drawn = first(3 * FAULT_NAMES.length, 7);
  for (let round = 0; round < 3; round += 1) {
    const names = drawn.slice(round * FAULT_NAMES.length, (round + 1) * FAULT_NAMES.length).map(({ fault }) => fault);
    assert.deepEqual(names.sort(), [...FAULT_NAMES].sort());
  }
  assert.ok(drawn.every(({ quietMs }) => quietMs >= 15_000 && quietMs <= 45_000));
});

test('a seed always draws the same schedule, and another seed another one', () => {
  assert.deepEqual(first(30, 1), first(30, 1));
  assert.notDeepEqual(first(30, 1), first(30, 2));
});

test('one round fits into an hour', () => {
  const seconds = FAULT_NAMES.reduce((sum, name) => sum + FAULT_KINDS[name].seconds + 45, 0);
  assert.ok(seconds < 3_600, `${seconds} s`);
});

test('a fault begins only when it can end in time', () => {
  const scheduled = { fault: 'relay', quietMs: 20_000, seed: 1 } as const;
  const needsMs = 20_000 + FAULT_KINDS.relay.seconds * 1_000;
  assert.equal(fits(scheduled, needsMs), true);
  assert.equal(fits(scheduled, needsMs - 1), false);
});
