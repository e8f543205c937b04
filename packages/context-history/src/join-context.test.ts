import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONTEXT_TASKS_MAX, LogConflict, LogUnavailable } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { contextKey, joinContext, TRIES_MAX } from './join-context.ts';

const place = (taskId: string, subject?: string) => ({
  owner: subject === undefined ? undefined : { subject },
  contextId: 'c1',
  taskId,
});

test('a task is entered once, after those that were there, and told those again when it asks again [S3-17]', async () => {
  const { contexts } = createMemoryLog();
  assert.deepEqual(await joinContext(contexts, place('t1')), []);
  assert.deepEqual(await joinContext(contexts, place('t2')), ['t1']);
  assert.deepEqual(await joinContext(contexts, place('t3')), ['t1', 't2']);
  assert.deepEqual(await joinContext(contexts, place('t2')), ['t1'], 'sent again, on whatever replica');
});

test('the same context of another owner is another conversation', async () => {
  const { contexts } = createMemoryLog();
  await joinContext(contexts, place('t1', 'ann'));
  assert.deepEqual(await joinContext(contexts, place('t2', 'bob')), []);
  assert.deepEqual(await joinContext(contexts, place('t3')), []);
  assert.deepEqual(await joinContext(contexts, place('t4', 'ann')), ['t1']);
  const keys = [undefined, {}, { subject: 'a' }, { tenant: 'a' }, { tenant: 'a', subject: 'b' }].map(owner =>
    contextKey(owner, 'c1'),
  );
  assert.equal(keys[0], keys[1], 'nobody is asked, or nobody answered: the same');
  assert.equal(new Set(keys).size, keys.length - 1);
});

test('tasks that begin at the same time all find a place, in one order', async () => {
  const log = createMemoryLog();
  const ids = Array.from({ length: 12 }, (_, index) => `t${index}`);
  const logs = ids.map(() => log.another());
  const earlier = await Promise.all(ids.map((id, index) => joinContext(logs[index]!.contexts, place(id))));
  assert.deepEqual(
    earlier.map(tasks => tasks.length).toSorted((a, b) => a - b),
    ids.map((_id, index) => index),
  );
});

test('a conversation keeps its CONTEXT_TASKS_MAX newest tasks', async () => {
  const { contexts } = createMemoryLog();
  for (let index = 1; index <= CONTEXT_TASKS_MAX; index += 1) await joinContext(contexts, place(`t${index}`));
  const earlier = await joinContext(contexts, place('one more'));
  assert.equal(earlier.length, CONTEXT_TASKS_MAX - 1);
  assert.deepEqual([earlier[0], earlier.at(-1)], ['t2', `t${CONTEXT_TASKS_MAX}`]);
});

test('a list that is never the one that was read is given up, not asked for ever', async () => {
  const { contexts } = createMemoryLog();
  let writes = 0;
  contexts.create = async () => {
    writes += 1;
    throw new LogConflict('somebody was first');
  };
  await assert.rejects(joinContext(contexts, place('t1')), LogUnavailable);
  assert.equal(writes, TRIES_MAX);
});
