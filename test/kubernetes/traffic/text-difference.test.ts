import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textDifference } from './text-difference.ts';

test('counts the characters that a text lacks and those that it has twice', () => {
  assert.deepEqual(textDifference('one two three', 'one two three'), { lost: 0, doubled: 0 });
  assert.deepEqual(textDifference('one two three', 'one three'), { lost: 4, doubled: 0 });
  assert.deepEqual(textDifference('one two three', 'one two two three'), { lost: 0, doubled: 4 });
  assert.deepEqual(textDifference('one two three', ''), { lost: 13, doubled: 0 });
  assert.deepEqual(textDifference('', 'one'), { lost: 0, doubled: 3 });
});

test('counts text in the wrong order as lost and doubled', () => {
  assert.deepEqual(textDifference('abcdef', 'defabc'), { lost: 3, doubled: 3 });
});
