import assert from 'node:assert/strict';
import test from 'node:test';
import { OTHER, TopNames, TURNOVER_MS, USES_MIN } from './top-names.ts';

function topOf(max: number) {
  const replaced: string[] = [];
  let nowMs = 0;
  const names = new TopNames({ max, onReplaced: name => replaced.push(name), now: () => nowMs });
  return {
    replaced,
    use: (name: string, times = 1) => Array.from({ length: times }, () => names.use(name)).at(-1),
    has: (name: string) => names.has(name),
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

test('the first names are label values, and the next one is other', () => {
  const top = topOf(2);
  assert.deepEqual([top.use('a'), top.use('b'), top.use('c'), top.use('a')], ['a', 'b', OTHER, 'a']);
  assert.deepEqual([top.has('b'), top.has('c')], [true, false]);
});

test('a name that is clearly busier takes the place of the idlest one after a minute, not before', () => {
  const top = topOf(2);
  top.use('a', 3);
  top.use('b', 10);
  assert.equal(top.use('c', 50), OTHER);
  top.pass(TURNOVER_MS - 1);
  assert.equal(top.use('c'), OTHER);
  top.pass(1);
  assert.equal(top.use('c'), 'c');
  assert.deepEqual(top.replaced, ['a']);
  assert.equal(top.use('a'), OTHER);
});

test('equal or small loads replace no name, so that they begin no new series each minute', () => {
  const top = topOf(1);
  for (let minute = 0; minute < 20; minute += 1) {
    top.use('a', 10);
    for (const name of ['b', 'c', 'd']) top.use(name, 15);
    top.pass(TURNOVER_MS);
  }
  const idle = topOf(1);
  idle.use('a');
  idle.pass(60 * TURNOVER_MS);
  for (let minute = 0; minute < 20; minute += 1) {
    idle.use('b', Math.floor(USES_MIN / 2));
    idle.pass(TURNOVER_MS);
  }
  assert.deepEqual([top.replaced, idle.replaced], [[], []]);
});

test('only one name is replaced in a minute', () => {
  const top = topOf(2);
  for (const name of ['a', 'b']) top.use(name);
  for (const name of ['c', 'd']) top.use(name, 100);
  top.pass(TURNOVER_MS);
  assert.deepEqual([top.use('c'), top.use('d'), top.replaced.length], ['c', OTHER, 1]);
});
