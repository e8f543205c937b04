import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readOptions } from './bench-options.ts';

const known = ['one', 'two'];

test('the bench asks all questions by default, or those that are named', () => {
  assert.deepEqual(readOptions([], known), {
    help: false,
    quick: false,
    runs: 1,
    accounts: undefined,
    json: undefined,
    questions: known,
  });
  assert.deepEqual(readOptions(['two', '--quick', '--runs', '3', '--accounts', 'agents', '--json', 'x.json'], known), {
    help: false,
    quick: true,
    runs: 3,
    accounts: 'agents',
    json: 'x.json',
    questions: ['two'],
  });
});

test('an unknown question is an error of one sentence', () => {
  assert.throws(() => readOptions(['three'], known), /^Error: there is no question "three"; there are one, two$/);
  assert.throws(() => readOptions(['--slow'], known), /--slow/);
});

test('accounts are one or those of agents', () => {
  assert.equal(readOptions(['--accounts', 'one'], known).accounts, 'one');
  assert.throws(() => readOptions(['--accounts', 'two'], known), /^Error: --accounts must be one or agents$/);
});

test('there are 1 to 9 runs', () => {
  assert.equal(readOptions(['--runs', '9'], known).runs, 9);
  for (const runs of ['0', '10', '1.5', 'x'])
    assert.throws(() => readOptions(['--runs', runs], known), /^Error: --runs must be a whole number from 1 to 9$/);
});
