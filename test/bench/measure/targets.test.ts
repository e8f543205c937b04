import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judge, runsLines } from './targets.ts';

const found = { min: 1, median: 2, max: 3, rounds: 5 };

test('a target is compared with the median, and the bound itself passes', () => {
  assert.equal(judge({ name: 'x', wanted: { atLeast: 2 }, found }).met, true);
  assert.equal(judge({ name: 'x', wanted: { atLeast: 2.01 }, found }).met, false);
  assert.equal(judge({ name: 'x', wanted: { atMost: 2 }, found }).met, true);
  assert.equal(judge({ name: 'x', wanted: { atMost: 1.99 }, found }).met, false);
});

test('the line contains the margin', () => {
  assert.equal(
    judge({ name: 'x', wanted: { atLeast: 1 }, found }).line,
    'met     x: 2.00 (1.00 to 3.00 in 5 rounds), wanted at least 1, 100 % to spare',
  );
  assert.equal(judge({ name: 'x', wanted: { atMost: 1 }, found: 1.5 }).line, 'MISSED  x: 1.50, wanted at most 1, 50.0 % off');
  assert.equal(judge({ name: 'x', wanted: { atMost: 0 }, found: 0 }).line, 'met     x: 0, wanted at most 0');
});

test('a target without a measurement is not met', () => {
  assert.equal(judge({ name: 'x', wanted: { atMost: 1 }, found: undefined }).met, false);
});

test('the figures of several runs are in one line for each target', () => {
  const wanted = { atMost: 2 };
  const run = (found: number | undefined) => [judge({ name: 'x', wanted, found })];
  assert.deepEqual(runsLines([run(1.5), run(2.5), run(undefined)]), [
    'met in 1 of 3  x: 1.50, 2.50, not measured, wanted at most 2',
  ]);
});
