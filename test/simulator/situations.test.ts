import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SITUATIONS, type Situation, SituationCounts } from './situations.ts';

const ALL = Object.keys(SITUATIONS) as Situation[];

function countsOf(seeds: number, met: readonly Situation[], isWire: boolean): SituationCounts {
  const counts = new SituationCounts(isWire);
  for (let seed = 1; seed <= seeds; seed++) counts.add(new Set(met));
  return counts;
}

test('1,000 seeds that never met a situation name it, and fewer do not', () => {
  const [missed, ...met] = ALL;
  assert.deepEqual(countsOf(1_000, met, true).missing(), [missed]);
  assert.deepEqual(countsOf(999, met, true).missing(), []);
  assert.deepEqual(countsOf(1_000, ALL, true).missing(), []);
});

test('the log in memory is not expected to meet a situation of the wire', () => {
  const ofMemory = ALL.filter(name => SITUATIONS[name] === 'any');
  assert.deepEqual(countsOf(1_000, ofMemory, false).missing(), []);
  assert.equal(countsOf(1_000, [], false).missing().length, ofMemory.length);
});
