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

/** Writes that are under way, in the order in which they were begun: `settle` ends one of a key. */
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

test('the index of a task is written in the order of its states: a write that is sent again is not stored over a newer one', async () => {
  const { tasks, open } = bucket();
  const writes = new IndexWrites(tasks);
  const [first, second] = [writes.put('a', entry(1)), writes.put('a', entry(2))];
  const other = writes.put('b', entry(1));
  const begun = () => open.map(({ key, value }) => `${key}${value.generation}`);
  assert.deepEqual(begun(), ['a1', 'b1'], 'no task waits for another');
  open[0]!.settle.resolve(1);
  await first;
  assert.deepEqual(begun(), ['a1', 'b1', 'a2']);
  open[2]!.settle.reject(new LogUnavailable('not acknowledged in time'));
  await assert.rejects(second, LogUnavailable);
  const third = writes.put('a', entry(3));
  assert.deepEqual(begun(), ['a1', 'b1', 'a2', 'a3'], 'a write that failed holds up none after it');
  open[1]!.settle.resolve(2);
  open[3]!.settle.resolve(3);
  await Promise.all([other, third]);
});
