import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readOptions } from './bench-options.ts';

const known = ['one', 'two'];

test('all questions by default, some by name', () => {
  assert.deepEqual(readOptions([], known), { help: false, quick: false, json: undefined, questions: known });
  assert.deepEqual(readOptions(['two', '--quick', '--json', 'x.json'], known), {
    help: false,
    quick: true,
    json: 'x.json',
    questions: ['two'],
  });
});

test('an unknown question is an error of one sentence', () => {
  assert.throws(() => readOptions(['three'], known), /^Error: there is no question "three"; there are one, two$/);
  assert.throws(() => readOptions(['--slow'], known), /--slow/);
});
