import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRepetition, REPEATED_DISTINCT_MIN, REPEATED_UNITS_MIN } from './repetition.ts';

test('a repeated text counts as a repetition if it has REPEATED_UNITS_MIN units, REPEATED_DISTINCT_MIN of them different', () => {
  const ofUnits = (units: number) => 'The answer is 42, as ever.'.slice(0, units);
  assert.equal(isRepetition(ofUnits(REPEATED_UNITS_MIN)), true);
  assert.equal(isRepetition(ofUnits(REPEATED_UNITS_MIN - 1)), false);
  const ofDifferent = (count: number) => 'abcdefgh'.slice(0, count).repeat(REPEATED_UNITS_MIN);
  assert.equal(isRepetition(ofDifferent(REPEATED_DISTINCT_MIN)), true);
  assert.equal(isRepetition(ofDifferent(REPEATED_DISTINCT_MIN - 1)), false);
  assert.equal(isRepetition('-'.repeat(64)), false);
});
