import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONTEXT_TASKS_MAX, LogConflict, LogUnavailable } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { contextIdFor, contextKey, isContextInUse, joinContext, TRIES_MAX } from './join-context.ts';
import { LoggedTask } from './task-facts.test-kit.ts';

const contextTask = (taskId: string, subject?: string) => ({
  owner: subject === undefined ? undefined : { subject },
  contextId: 'c1',
  taskId,
});

test('a task joins once, after the existing tasks, and a repeated join returns the same earlier tasks [S3-17]', async () => {
  const log = createMemoryLog();
  assert.deepEqual(await joinContext(log, contextTask('t1')), []);
  assert.deepEqual(await joinContext(log, contextTask('t2')), ['t1']);
  assert.deepEqual(await joinContext(log, contextTask('t3')), ['t1', 't2']);
  assert.deepEqual(await joinContext(log, contextTask('t2')), ['t1'], 'a repeated join, on any replica');
});

test('a task joins the context that was made for it without reading it, and a repeated join finds the task there', async () => {
  const log = createMemoryLog();
  const { contexts } = log;
  const { get } = contexts;
  let reads = 0;
  contexts.get = key => {
    reads += 1;
    return get.call(contexts, key);
  };
  assert.deepEqual(await joinContext(log, { ...contextTask('t1'), isNew: true }), []);
  assert.equal(reads, 0);
  assert.deepEqual(await joinContext(log, contextTask('t2')), ['t1']);
  assert.deepEqual(await joinContext(log, { ...contextTask('t1'), isNew: true }), []);
});

test('equal context ids of two owners are two contexts', async () => {
  const log = createMemoryLog();
  await joinContext(log, contextTask('t1', 'ann'));
  assert.deepEqual(await joinContext(log, contextTask('t2', 'bob')), []);
  assert.deepEqual(await joinContext(log, contextTask('t3')), []);
  assert.deepEqual(await joinContext(log, contextTask('t4', 'ann')), ['t1']);
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
  const earlier = await Promise.all(ids.map((id, index) => joinContext(logs[index]!, contextTask(id))));
  assert.deepEqual(
    earlier.map(tasks => tasks.length).toSorted((a, b) => a - b),
    ids.map((_id, index) => index),
  );
});

test('a context keeps its CONTEXT_TASKS_MAX newest tasks', async () => {
  const log = createMemoryLog();
  for (let index = 1; index <= CONTEXT_TASKS_MAX; index += 1) await joinContext(log, contextTask(`t${index}`));
  const earlier = await joinContext(log, contextTask('one more'));
  assert.equal(earlier.length, CONTEXT_TASKS_MAX - 1);
  assert.deepEqual([earlier[0], earlier.at(-1)], ['t2', `t${CONTEXT_TASKS_MAX}`]);
});

test('a permanent conflict rejects after TRIES_MAX tries', async () => {
  const log = createMemoryLog();
  const { contexts } = log;
  let writes = 0;
  contexts.create = async () => {
    writes += 1;
    throw new LogConflict('another writer was first');
  };
  await assert.rejects(joinContext(log, contextTask('t1')), LogUnavailable);
  assert.equal(writes, TRIES_MAX);
});

const FIRST = '01936f3e-7a10-7c21-a5b2-0123456789ab';
const MADE = '01936f3e-7a10-8c21-a5b2-0123456789ab';

test('a context id made for a task names it, so the entry of the context begins with the second task', async () => {
  const log = createMemoryLog();
  const { contexts } = log;
  assert.equal(contextIdFor(FIRST), MADE);
  await LoggedTask.begin(log, FIRST, { text: 'a', contextId: MADE });
  const join = (taskId: string) => joinContext(log, { owner: undefined, contextId: MADE, taskId });
  assert.deepEqual(await join(FIRST), []);
  assert.equal(await contexts.revision(), 0, 'nothing was written');
  assert.deepEqual(await join('t2'), [FIRST]);
  assert.deepEqual(await join('t3'), [FIRST, 't2']);
  assert.deepEqual(await join(FIRST), [], 'a repeated join');
  assert.deepEqual(await join('t2'), [FIRST], 'a repeated join');
});

test('a context is made only for a task id of a server', () => {
  for (const taskId of ['t1', MADE]) assert.throws(() => contextIdFor(taskId), TypeError);
});

test('the first task is added to a list that a server of an earlier version began, unless the list is full', async () => {
  const log = createMemoryLog();
  const { contexts } = log;
  const key = contextKey(undefined, MADE);
  const join = (taskId: string) => joinContext(log, { owner: undefined, contextId: MADE, taskId });
  await LoggedTask.begin(log, FIRST, { text: 'a', contextId: MADE });
  await contexts.create(key, { tasks: ['t2'] });
  assert.deepEqual(await join('t3'), [FIRST, 't2']);
  for (let index = 4; index <= CONTEXT_TASKS_MAX; index += 1) await join(`t${index}`);
  assert.equal((await join('one more'))[0], 't2');
  assert.equal((await join('and another'))[0], 't3');
});

test('a context is in use if it has an entry, or if the task that its id names belongs to it and to the same owner', async () => {
  const log = createMemoryLog();
  const ann = { subject: 'ann' };
  assert.equal(await isContextInUse(log, ann, MADE), false);
  await LoggedTask.begin(log, FIRST, { text: 'a', owner: ann, contextId: MADE });
  assert.equal(await isContextInUse(log, ann, MADE), true);
  assert.equal(await isContextInUse(log, { subject: 'bob' }, MADE), false);
  await joinContext(log, { owner: ann, contextId: 'c1', taskId: 't1' });
  assert.equal(await isContextInUse(log, ann, 'c1'), true);
  const elsewhere = FIRST.replace('ab', 'cd');
  await LoggedTask.begin(log, elsewhere, { text: 'a', owner: ann, contextId: 'c1' });
  assert.equal(await isContextInUse(log, ann, contextIdFor(elsewhere)), false);
  const join = (subject: string) => joinContext(log, { owner: { subject }, contextId: MADE, taskId: 't2' });
  assert.deepEqual([await join('ann'), await join('bob')], [[FIRST], []]);
});
