import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cpuGrowth } from '../../../test/support/cpu-growth.ts';
import { placeOf } from './turn-end.ts';

test('the location of an error is the file and line of its first stack frame', () => {
  const error = new Error('broken at a.ts:1:1');
  error.stack = `Error: ${error.message}\n    at run (file:///app/src/my-agent.v2.mts:12:34)\n    at next (/app/other.js:5:6)`;
  assert.equal(placeOf(error), 'my-agent.v2.mts:12');
  assert.equal(placeOf('broken'), undefined);
});

test('the location is found in linear time, even if the message was changed and the stack contains content', () => {
  const growth = cpuGrowth(
    characters => `Error: ${'a'.repeat(characters)}`,
    2 ** 16,
    stack => placeOf(Object.assign(new Error('changed'), { stack })),
  );
  assert.ok(growth < 64, `16 times the stack took ${growth} times the work`);
});
