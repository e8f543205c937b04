import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstDifference } from './first-difference.ts';

test('the first member that differs is found at any depth', () => {
  assert.equal(firstDifference({ a: 1, b: [{ c: 'x' }] }, { b: [{ c: 'x' }], a: 1 }), undefined);
  assert.deepEqual(firstDifference({ a: 1, b: [{ c: 'x' }] }, { a: 1, b: [{ c: 'y' }] }), {
    path: ['b', '0', 'c'],
    a: 'x',
    b: 'y',
  });
});

test('a member that only one value has is a difference, and so is a value of another kind', () => {
  assert.deepEqual(firstDifference({ a: 1 }, { a: 1, b: 2 }), { path: ['b'], a: undefined, b: 2 });
  assert.deepEqual(firstDifference({ a: [] }, { a: null }), { path: ['a'], a: [], b: null });
  assert.deepEqual(firstDifference(undefined, { a: 1 }), { path: [], a: undefined, b: { a: 1 } });
});
