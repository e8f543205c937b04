import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type KeyValue, LogUnavailable, type TaskIndexEntry } from '@hopline/log';
import { IndexWrites } from './side-effects.ts';

const entry = (generation: number): TaskIndexEntry => ({
  contextId: 'c',
  role: 'supervisor',
  state: 'TASK_STATE_WORKING',
  startSeq: 1,
  generation,
  at: generation,
});

/** A bucket whose writes stay in flight, in the order of their start, until the test settles them. */
function bucket() {
  const open: { key: string; value: TaskIndexEntry; settle: PromiseWithResolvers<number> }[] = [];
  const tasks = {
    put: (key: string, value: TaskIndexEntry) => {
      const settle = Promise.withResolvers<number>();
      open.push({ key, value, settle });
      return settle.promise;
    },
  } as KeyValue<TaskIndexEntry>;
  return { tasks, open };
}

test('the index of a task is written in the order of its states: a retried write never replaces a newer one', async () => {
  const { tasks, open } = bucket();
  const writes = new IndexWrites(tasks);
  const [first, second] = [writes.put('a', entry(1)), writes.put('a', entry(2))];
  const other = writes.put('b', entry(1));
  const started = () => open.map(({ key, value }) => `${key}${value.generation}`);
  assert.deepEqual(started(), ['a1', 'b1'], 'tasks do not wait for each other');
  open[0]!.settle.resolve(1);
  await first;
  assert.deepEqual(started(), ['a1', 'b1', 'a2']);
  open[2]!.settle.reject(new LogUnavailable('not acknowledged in time'));
  await assert.rejects(second, LogUnavailable);
  const third = writes.put('a', entry(3));
  assert.deepEqual(started(), ['a1', 'b1', 'a2', 'a3'], 'a failed write blocks no later one');
  open[1]!.settle.resolve(2);
  open[3]!.settle.resolve(3);
  await Promise.all([other, third]);
});
