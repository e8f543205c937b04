import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONTEXT_TASKS_MAX, LogConflict, LogUnavailable } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { contextKey, joinContext, TRIES_MAX } from './join-context.ts';

const contextTask = (taskId: string, subject?: string) => ({
  owner: subject === undefined ? undefined : { subject },
  contextId: 'c1',
  taskId,
});

test('a task joins once, after the existing tasks, and a repeated join returns the same earlier tasks [S3-17]', async () => {
  const { contexts } = createMemoryLog();
  assert.deepEqual(await joinContext(contexts, contextTask('t1')), []);
  assert.deepEqual(await joinContext(contexts, contextTask('t2')), ['t1']);
  assert.deepEqual(await joinContext(contexts, contextTask('t3')), ['t1', 't2']);
  assert.deepEqual(await joinContext(contexts, contextTask('t2')), ['t1'], 'a repeated join, on any replica');
});

test('a task joins a context that was made for it without a read, and a repeated join finds it', async () => {
  const { contexts } = createMemoryLog();
  const { get } = contexts;
  let reads = 0;
  contexts.get = key => {
    reads += 1;
    return get.call(contexts, key);
  };
  assert.deepEqual(await joinContext(contexts, { ...contextTask('t1'), isNew: true }), []);
  assert.equal(reads, 0);
  assert.deepEqual(await joinContext(contexts, contextTask('t2')), ['t1']);
  assert.deepEqual(await joinContext(contexts, { ...contextTask('t1'), isNew: true }), []);
});

test('the same context id of another owner is another context', async () => {
  const { contexts } = createMemoryLog();
  await joinContext(contexts, contextTask('t1', 'ann'));
  assert.deepEqual(await joinContext(contexts, contextTask('t2', 'bob')), []);
  assert.deepEqual(await joinContext(contexts, contextTask('t3')), []);
  assert.deepEqual(await joinContext(contexts, contextTask('t4', 'ann')), ['t1']);
  const keys = [undefined, {}, { subject: 'a' }, { tenant: 'a' }, { tenant: 'a', subject: 'b' }].map(owner =>
    contextKey(owner, 'c1'),
  );
  assert.equal(keys[0], keys[1], 'no owner and an empty owner are the same');
  assert.equal(new Set(keys).size, keys.length - 1);
});

test('tasks that start at the same time all join, in one order', async () => {
  const log = createMemoryLog();
  const ids = Array.from({ length: 12 }, (_, index) => `t${index}`);
  const logs = ids.map(() => log.another());
  const earlier = await Promise.all(ids.map((id, index) => joinContext(logs[index]!.contexts, contextTask(id))));
  assert.deepEqual(
    earlier.map(tasks => tasks.length).toSorted((a, b) => a - b),
    ids.map((_id, index) => index),
  );
});

test('a context keeps its CONTEXT_TASKS_MAX newest tasks', async () => {
  const { contexts } = createMemoryLog();
  for (let index = 1; index <= CONTEXT_TASKS_MAX; index += 1) await joinContext(contexts, contextTask(`t${index}`));
  const earlier = await joinContext(contexts, contextTask('one more'));
  assert.equal(earlier.length, CONTEXT_TASKS_MAX - 1);
  assert.deepEqual([earlier[0], earlier.at(-1)], ['t2', `t${CONTEXT_TASKS_MAX}`]);
});

test('a permanent conflict rejects after TRIES_MAX tries', async () => {
  const { contexts } = createMemoryLog();
  let writes = 0;
  contexts.create = async () => {
    writes += 1;
    throw new LogConflict('another writer was first');
  };
  await assert.rejects(joinContext(contexts, contextTask('t1')), LogUnavailable);
  assert.equal(writes, TRIES_MAX);
});
