import assert from 'node:assert/strict';
import test from 'node:test';
import { contextIdOf, firstTaskOf } from './context-id.ts';

const TASK = '01936f3e-7a10-7c21-a5b2-0123456789ab';
const CONTEXT = '01936f3e-7a10-8c21-a5b2-0123456789ab';

test('the id of a context that a server makes names its first task', () => {
  assert.equal(contextIdOf(TASK), CONTEXT);
  assert.equal(firstTaskOf(CONTEXT), TASK);
});

test('ids of other forms name nothing', () => {
  for (const id of ['c1', TASK, CONTEXT.toUpperCase(), `${CONTEXT}0`, CONTEXT.replace('01', '04'), CONTEXT.replace('-a', '-c')])
    assert.equal(firstTaskOf(id), undefined, id);
  for (const id of ['t1', CONTEXT, `own-x-${TASK}`]) assert.equal(contextIdOf(id), undefined, id);
});
