import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BoundedMap } from './bounded-map.ts';

test('the entry that was set longest ago is dropped, and setting an entry again makes it the newest', () => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1).set('b', 2).set('a', 3);
  assert.deepEqual(
    [...map],
    [
      ['b', 2],
      ['a', 3],
    ],
  );
  map.set('c', 4);
  assert.deepEqual(
    [...map],
    [
      ['a', 3],
      ['c', 4],
    ],
  );
});
