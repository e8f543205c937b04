import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Log, listKeyOf, type TaskIndexEntry } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { OpenTasksCount } from './open-tasks-count.ts';

const ROLE = 'supervisor';
const ANNA = { tenant: 't', subject: 'anna' };
const MAX = 10;

async function opened() {
  const log = createMemoryLog();
  let nowMs = 0;
  const count = new OpenTasksCount({ log, role: ROLE, onLost: error => assert.fail(String(error)), now: () => nowMs });
  const { match } = log.taskLists;
  let reads = 0;
  log.taskLists.match = async (...filters) => {
    reads += 1;
    return match.apply(log.taskLists, filters);
  };
  // The count of the log in memory reads the entries.
  log.taskLists.count = async filter => (await match.call(log.taskLists, [filter])).length;
  const put = (n: number, state: TaskIndexEntry['state']) => {
    const entry: TaskIndexEntry = { contextId: 'c', role: ROLE, owner: ANNA, state, startSeq: 1, generation: 1, at: 1 };
    return log.taskLists.put(keyOf(log, n), entry);
  };
  for (let n = 0; n < MAX; n += 1) await put(n, n < 3 ? 'TASK_STATE_COMPLETED' : 'TASK_STATE_WORKING');
  /** Whether the caller is at its limit after `ms`. */
  const refresh = async (ms: number) => {
    nowMs += ms;
    await count.refresh(ANNA, MAX, 2 * MAX);
    return count.isFull(ANNA, MAX, 2 * MAX);
  };
  count.add(ANNA, 'begun');
  return { log, put, refresh, reads: () => reads };
}

const keyOf = (log: Log, n: number) => listKeyOf(`task-${n}`, { role: ROLE, owner: ANNA }, log.layouts);

test('tasks that have just ended do not count', async () => {
  const { put, refresh, reads } = await opened();
  assert.equal(await refresh(0), false, '7 open tasks');
  for (let n = 0; n < 2; n += 1) await put(n, 'TASK_STATE_WORKING');
  assert.equal(await refresh(1_000), false);
  await put(2, 'TASK_STATE_WORKING');
  assert.equal(await refresh(1_000), true);
  assert.equal(reads(), 3);
});

test('the tasks of a caller at its limit are read once in ten seconds, however often it sends', async () => {
  const { put, refresh, reads } = await opened();
  for (let n = 0; n < 3; n += 1) await put(n, 'TASK_STATE_WORKING');
  for (let second = 0; second < 10; second += 1) assert.equal(await refresh(1_000), true);
  assert.equal(reads(), 1);
  await put(0, 'TASK_STATE_COMPLETED');
  assert.equal(await refresh(1_000), false);
  assert.equal(reads(), 2);
});

test('a task whose entry is removed makes room at once', async () => {
  const { log, put, refresh, reads } = await opened();
  for (let n = 0; n < 3; n += 1) await put(n, 'TASK_STATE_WORKING');
  assert.equal(await refresh(0), true);
  const key = keyOf(log, 0);
  await log.taskLists.purge(key, (await log.taskLists.get(key))!.revision);
  assert.equal(await refresh(1_000), false);
  assert.equal(reads(), 1);
});
