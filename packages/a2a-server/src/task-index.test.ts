import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TaskIndexEntry } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import fc from 'fast-check';
import { until, untilTick } from '../../../test/kit/until.ts';
import { TaskIndex } from './task-index.ts';

function openIndex(entriesMax = 1_000): TaskIndex {
  const { tasks } = createMemoryLog();
  return new TaskIndex({ tasks, role: 'supervisor', entriesMax, readyMsMax: 1_000, onLost: error => assert.fail(String(error)) });
}

const entry = (at: number, generation: number, more: Partial<TaskIndexEntry> = {}): Omit<TaskIndexEntry, 'startSeq'> => ({
  contextId: 'c',
  role: 'supervisor',
  state: 'TASK_STATE_WORKING',
  at,
  generation,
  ...more,
});

const ids = (index: TaskIndex) => index.newestFirst(() => true).map(task => task.taskId);

test('the newest generation of each task is listed by status time, after any order of changes', () => {
  const step = fc.record({
    taskId: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    at: fc.integer({ min: 0, max: 3 }),
    generation: fc.integer({ min: 1, max: 5 }),
    forgets: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step), steps => {
      const index = openIndex();
      const model = new Map<string, { at: number; generation: number }>();
      for (const { taskId, at, generation, forgets } of steps) {
        if (forgets) {
          index.forget(taskId);
          model.delete(taskId);
          continue;
        }
        index.note(taskId, entry(at, generation));
        if ((model.get(taskId)?.generation ?? 0) < generation) model.set(taskId, { at, generation });
      }
      const expected = [...model].sort(([a, { at: atA }], [b, { at: atB }]) => atB - atA || (a < b ? 1 : -1));
      assert.deepEqual(
        ids(index),
        expected.map(([taskId]) => taskId),
      );
    }),
  );
});

test('a full index drops the task with the oldest status, even if it is the new one', () => {
  const index = openIndex(2);
  index.note('b', entry(2, 1));
  index.note('c', entry(3, 1));
  assert.deepEqual(ids(index), ['c', 'b']);
  index.note('a', entry(1, 1));
  assert.deepEqual(ids(index), ['c', 'b']);
  index.note('d', entry(4, 1));
  assert.deepEqual(ids(index), ['d', 'c']);
  index.note('b', entry(5, 2));
  assert.deepEqual(ids(index), ['b', 'd']);
});

test('tasks of another role, and entries without one, are left out', () => {
  const index = openIndex();
  index.note('x', entry(1, 1, { role: 'agent.argocd' }));
  const { role: _role, ...without } = entry(1, 1);
  index.note('y', without as Omit<TaskIndexEntry, 'startSeq'>);
  assert.deepEqual(ids(index), []);
});

test('ready covers every write before it by any writer, else throws UNAVAILABLE', async () => {
  const log = createMemoryLog();
  const options = { role: 'supervisor', entriesMax: 100, onLost: () => {}, tasks: log.tasks } as const;
  const index = new TaskIndex({ ...options, readyMsMax: 60_000 });
  await index.ready();
  for (let n = 1; n <= 50; n += 1) {
    await log.tasks.put(`t${n}`, { ...entry(n, 1), startSeq: n });
    await index.ready();
    assert.equal(ids(index)[0], `t${n}`);
  }
  index.close();
  const impatient = new TaskIndex({ ...options, readyMsMax: 200 });
  impatient.close();
  await log.tasks.put('later', { ...entry(99, 1), startSeq: 99 });
  await assert.rejects(impatient.ready(), { code: 'UNAVAILABLE' });
});

/** An index on a bucket. While `isHeld` is true the index sees no changes; setting `isLost` breaks its watch once. */
function openHeld(readyMsMax: number) {
  const { tasks } = createMemoryLog();
  const held = { isHeld: false, isLost: false, losses: 0 };
  const watch = tasks.watch.bind(tasks);
  tasks.watch = async function* (signal) {
    for await (const change of watch(signal)) {
      await until(() => !held.isHeld);
      if (held.isLost) {
        held.isLost = false;
        throw new Error('lost');
      }
      yield change;
    }
  };
  const onLost = () => {
    held.losses += 1;
  };
  return { tasks, held, index: new TaskIndex({ tasks, role: 'supervisor', entriesMax: 10, readyMsMax, onLost }) };
}

test('ready waits for the newest write, but not for later ones', async t => {
  const { tasks, held, index } = openHeld(5_000);
  t.after(() => index.close());
  await index.ready();
  held.isHeld = true;
  await tasks.put('a', { ...entry(1, 1), startSeq: 1 });
  const ready = index.ready();
  assert.equal(await Promise.race([ready, new Promise(resolve => setTimeout(resolve, 100, 'waits'))]), 'waits');
  held.isHeld = false;
  await ready;
  assert.deepEqual(ids(index), ['a']);
});

test('ready resolves when a bucket without new writes has been read again', async t => {
  const { tasks, held, index } = openHeld(2_000);
  t.after(() => index.close());
  await index.ready();
  for (const [n, id] of ['a', 'b', 'c'].entries()) await tasks.put(id, { ...entry(n, 1), startSeq: n });
  await index.ready();
  held.isLost = true;
  await tasks.put('d', { ...entry(4, 1), startSeq: 4 });
  await index.ready();
  assert.deepEqual([held.losses, ids(index)], [1, ['d', 'c', 'b', 'a']]);
  await new Promise(resolve => setTimeout(resolve, 50));
  await index.ready();
});

test('a task is removed unless a later generation has arrived', () => {
  const index = openIndex();
  index.note('a', entry(1, 2));
  index.forget('a', 1);
  assert.deepEqual(ids(index), ['a']);
  index.forget('a', 2);
  assert.deepEqual(ids(index), []);
});

test('the bucket is read at the first list and followed from then on, removals included', async () => {
  const { tasks } = createMemoryLog();
  await tasks.put('a', { ...entry(1, 1), startSeq: 1 });
  const index = new TaskIndex({ tasks, role: 'supervisor', entriesMax: 10, readyMsMax: 1_000, onLost: () => {} });
  assert.deepEqual(ids(index), []);
  await Promise.all([index.ready(), index.ready()]);
  assert.deepEqual(ids(index), ['a']);
  await tasks.put('b', { ...entry(2, 1), startSeq: 2 });
  await tasks.delete('a');
  await untilTick(() => !ids(index).includes('a'));
  assert.deepEqual(ids(index), ['b']);
  index.close();
});
