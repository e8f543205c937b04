import assert from 'node:assert/strict';
import { test } from 'node:test';
import { interleave } from './rounds.ts';

test('peers run in turn, and each keeps its results in the order of the rounds', async () => {
  const order: string[] = [];
  const peer = (name: string) => async () => order.push(name);
  const results = await interleave(3, { a: peer('a'), b: peer('b') });
  assert.deepEqual(order, ['a', 'b', 'a', 'b', 'a', 'b']);
  assert.deepEqual(results, { a: [1, 3, 5], b: [2, 4, 6] });
});
