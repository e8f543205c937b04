import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type KeyValue, LogConflict, LogUnavailable, type TaskIndexEntry } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { untilTick } from '../../../test/kit/until.ts';
import type { OpenTask } from './index-entry.ts';
import { INDEX_TRIES_MAX, storeEntry } from './index-entry.ts';
import { IndexWrites, RUNNING_INDEX_DELAY_MS } from './index-writes.ts';

const entry = (generation: number, startStoredAt = 1): TaskIndexEntry => ({
  contextId: 'c',
  role: 'supervisor',
  state: 'TASK_STATE_WORKING',
  startSeq: startStoredAt,
  startStoredAt,
  generation,
  at: generation,
});

const ended = (generation: number): TaskIndexEntry => ({ ...entry(generation), state: 'TASK_STATE_COMPLETED' });

/** A bucket whose writes wait in the order in which they started, until the test lets them reach the log or fail. */
function slow(tasks: KeyValue<TaskIndexEntry>) {
  const waiting: { what: string; settle: (error?: Error) => void }[] = [];
  const wait = async (what: string): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    waiting.push({ what, settle: error => (error === undefined ? resolve() : reject(error)) });
    return promise;
  };
  const bucket: Pick<KeyValue<TaskIndexEntry>, 'get' | 'create' | 'update'> = {
    get: key => tasks.get(key),
    create: async (key, value) => {
      await wait(`${key}${value.generation}`);
      return tasks.create(key, value);
    },
    update: async (key, value, revision) => {
      await wait(`${key}${value.generation}`);
      return tasks.update(key, value, revision);
    },
  };
  const started = async (count: number): Promise<string[]> => {
    await untilTick(() => waiting.length >= count);
    return waiting.map(({ what }) => what);
  };
  return { tasks: bucket as KeyValue<TaskIndexEntry>, waiting, started };
}

/** A bucket and the names of the calls that were made to it. */
function countCalls(tasks: KeyValue<TaskIndexEntry>) {
  const calls: string[] = [];
  const counted = new Proxy(tasks, {
    get: (target, name: keyof typeof tasks) => {
      calls.push(name);
      return target[name].bind(target);
    },
  });
  return { counted, calls };
}

test('the index of a task is written in the order of its states, and a failed write does not block later ones', async () => {
  const log = createMemoryLog();
  const { tasks, waiting, started } = slow(log.tasks);
  const writes = new IndexWrites(tasks);
  const first = writes.put('a', entry(1));
  const other = writes.put('b', entry(1));
  assert.deepEqual(await started(2), ['a1', 'b1'], 'tasks do not wait for each other');
  const second = writes.put('a', entry(2));
  const next = writes.put('c', entry(1));
  assert.deepEqual(await started(3), ['a1', 'b1', 'c1'], 'a task has one write at a time');
  waiting[2]!.settle();
  waiting[0]!.settle();
  await first;
  assert.deepEqual(await started(4), ['a1', 'b1', 'c1', 'a2']);
  waiting[3]!.settle(new LogUnavailable('not acknowledged in time'));
  await assert.rejects(second, LogUnavailable);
  const third = writes.put('a', entry(3));
  assert.deepEqual(await started(5), ['a1', 'b1', 'c1', 'a2', 'a3']);
  waiting[1]!.settle();
  waiting[4]!.settle();
  await Promise.all([other, next, third]);
  assert.equal((await log.tasks.get('a'))?.value.generation, 3);
});

test('the changes of a task within the delay lead to one write of the newest entry, and each caller is notified', async () => {
  const { tasks } = createMemoryLog();
  const { counted, calls } = countCalls(tasks);
  const writes = new IndexWrites(counted);
  const stored = [writes.put('a', entry(1)), writes.put('a', entry(3)), writes.put('a', entry(2))];
  await Promise.all(stored);
  assert.deepEqual(calls, ['create']);
  assert.deepEqual((await tasks.get('a'))?.value, entry(3));
});

test('a late write from a relay that lost the task does not replace a newer entry [S3-8]', async () => {
  for (const isFirst of [true, false]) {
    const log = createMemoryLog();
    if (!isFirst) await log.tasks.create('a', entry(0));
    const { tasks, waiting, started } = slow(log.tasks);
    const late = new IndexWrites(tasks).put('a', entry(2));
    await started(1);
    await new IndexWrites(log.tasks).put('a', entry(3));
    waiting[0]!.settle();
    await late;
    assert.equal((await log.tasks.get('a'))?.value.generation, 3);
  }
});

test('an entry of the same generation is replaced only by one whose start was copied forward later', async () => {
  const log = createMemoryLog();
  const writes = new IndexWrites(log.tasks);
  for (const startStoredAt of [5, 9, 5, 9]) await writes.put('a', entry(2, startStoredAt));
  const stored = await log.tasks.get('a');
  assert.equal(stored?.value.startStoredAt, 9);
  assert.equal(stored?.revision, 2);
});

test('an index write that conflicts is tried again a bounded number of times', async () => {
  for (const conflicts of [INDEX_TRIES_MAX - 1, INDEX_TRIES_MAX]) {
    const log = createMemoryLog();
    let left = conflicts;
    const tasks: KeyValue<TaskIndexEntry> = Object.create(log.tasks);
    tasks.get = key => log.tasks.get(key);
    tasks.create = async (key, value) => {
      if (left-- > 0) throw new LogConflict('the key exists');
      return log.tasks.create(key, value);
    };
    const write = new IndexWrites(tasks).put('a', entry(1));
    if (conflicts < INDEX_TRIES_MAX) await write;
    else await assert.rejects(write, LogUnavailable);
  }
});

test('a write with a known revision needs no read, and one with an older revision reads once', async () => {
  const { tasks } = createMemoryLog();
  const { counted, calls } = countCalls(tasks);
  let known: OpenTask | undefined = { entry: entry(0), revision: await tasks.create('a', entry(0)) };
  known = await storeEntry(counted, 'a', ended(1), known);
  assert.deepEqual(calls.splice(0), ['update']);
  await storeEntry(tasks, 'a', ended(3));
  known = await storeEntry(counted, 'a', ended(4), known);
  assert.deepEqual(calls.splice(0), ['update', 'get', 'update']);
  await storeEntry(tasks, 'a', ended(6));
  const kept = await storeEntry(counted, 'a', ended(5), known);
  assert.deepEqual(calls, ['update', 'get'], 'a later entry is kept');
  assert.equal(kept?.entry.generation, 6);
  assert.equal((await tasks.get('a'))?.value.generation, 6);
});

test('a task that ends soon is written once, at its end; a running task is written after RUNNING_INDEX_DELAY_MS', async () => {
  const { tasks } = createMemoryLog();
  const writes = new IndexWrites(tasks);
  const startedMs = performance.now();
  const works = writes.put('works', entry(2));
  const ends = writes.put('ends', entry(2));
  await Promise.all([ends, writes.put('ends', ended(4))]);
  assert.deepEqual(await tasks.get('ends'), { key: 'ends', value: ended(4), revision: 1 });
  assert.equal(await tasks.get('works'), undefined, 'the end of another task does not hurry it');
  await works;
  assert.ok(performance.now() - startedMs >= RUNNING_INDEX_DELAY_MS - 1);
  assert.equal((await tasks.get('works'))?.value.generation, 2);
});

test('an entry that shows a waiting task is replaced after INDEX_DELAY_MS, even by a running one', async () => {
  const { tasks } = createMemoryLog();
  const shown: OpenTask = {
    entry: { ...entry(2), state: 'TASK_STATE_INPUT_REQUIRED' },
    revision: await tasks.create('asked', entry(2)),
  };
  const writes = new IndexWrites(tasks, { open: new Map([['asked', shown]]), store: async () => {} });
  const works = writes.put('works', entry(3));
  await writes.put('asked', entry(3));
  assert.equal((await tasks.get('asked'))?.value.generation, 3);
  assert.equal(await tasks.get('works'), undefined);
  await works;
});

test('the entry by id is written without a read, both the first one and later ones of an open task', async () => {
  const { tasks } = createMemoryLog();
  const { counted, calls } = countCalls(tasks);
  const writes = new IndexWrites(counted);
  await writes.put('a', entry(1));
  await writes.put('a', ended(2));
  assert.deepEqual(calls, ['create', 'update']);
  calls.length = 0;
  const { revision } = (await tasks.get('a'))!;
  await writes.put('a', ended(1));
  assert.equal((await tasks.get('a'))?.revision, revision, 'an earlier entry does not replace a later one');
  assert.deepEqual(calls, ['create', 'get']);
});
