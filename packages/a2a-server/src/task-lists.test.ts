import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TaskState } from '@hopline/a2a';
import { Layouts } from '@hopline/events';
import {
  addEnded,
  ENDED_NEWEST_MAX,
  ENDED_PAGES_MAX,
  type EndedPageRange,
  type EndedTask,
  endedKey,
  listKeyOf,
  listPrefixOf,
  putTask,
  type TaskIndexEntry,
  toLogExtent,
} from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import fc from 'fast-check';
import { comparePositions, type IndexedTask } from './task-index.ts';
import { type OwnedTasks, TaskLists } from './task-lists.ts';

const ANNA = { tenant: 't', subject: 'anna' };
const ROLE = 'supervisor';

function listsOf(log: MemoryLog): TaskLists {
  return new TaskLists({ log, role: ROLE, readyMsMax: 5_000, onLost: error => assert.fail(String(error)) });
}

const entry = (more: Partial<TaskIndexEntry> = {}): TaskIndexEntry => ({
  contextId: 'c',
  role: ROLE,
  owner: ANNA,
  state: 'TASK_STATE_WORKING',
  startSeq: 1,
  generation: 3,
  at: 1,
  ...more,
});

const STATES: TaskState[] = ['TASK_STATE_COMPLETED', 'TASK_STATE_FAILED'];
const ended = (n: number, at = n): EndedTask => [`t${n}`, `c${n % 3}`, STATES[n % 2]!, at, 3, 0];

/** Stores ended tasks in the lists of `shards` shards in turn, in the given order. */
async function store(log: MemoryLog, shards: number, tasks: readonly EndedTask[]): Promise<void> {
  for (let shard = 0; shard < shards; shard += 1) {
    const prefix = listPrefixOf('x', entry(), Layouts.one(1)).replace(/00$/, `0${shard}`);
    const listed = tasks.filter((_, n) => n % shards === shard);
    for (let at = 0; at < listed.length; at += 100) await addEnded(log.taskLists, prefix, listed.slice(at, at + 100));
  }
}

const all = () => true;
const ALL = { after: undefined, sinceMs: Number.NEGATIVE_INFINITY };
const idsOf = (tasks: IndexedTask[]) => tasks.map(({ taskId }) => taskId);

/** Every page from the first to the last. */
async function pages(lists: TaskLists, matches: (task: IndexedTask) => boolean, count: number, tasksMax: number) {
  const found: IndexedTask[] = [];
  let after: { taskId: string; at: number } | undefined;
  for (let n = 1; ; n += 1) {
    const owned = await lists.of(ANNA);
    const page = await owned.select(matches, { ...ALL, after }, { count: count + 1, tasksMax });
    const shown = page.found.slice(0, count);
    found.push(...shown);
    if (page.found.length > count) after = shown.at(-1);
    else if (page.unreadTo !== undefined) after = { at: page.unreadTo + 1, taskId: '-' };
    else return { found, pages: n };
  }
}

test('over lists, pages and entries, tasks come once each, newest end first, whatever the filter and the size of a page', async () => {
  const log = createMemoryLog();
  const tasks = Array.from({ length: 1_500 }, (_, n) => ended(n, 10_000 + ((n * 7_919) % 1_000)));
  await store(log, 3, tasks);
  const pagesStored = await log.taskLists.match(['*.*.*.ended.*']);
  assert.ok(pagesStored.length >= 3, `${pagesStored.length} pages`);
  await log.taskLists.put(listKeyOf('open', entry(), log.layouts), entry({ at: 10_500 }));
  const lists = listsOf(log);
  const model: IndexedTask[] = tasks.map(([taskId, contextId, state, at, generation]) => ({
    taskId,
    contextId,
    state,
    at,
    generation,
    owner: ANNA,
  }));
  model.push({ taskId: 'open', contextId: 'c', state: 'TASK_STATE_WORKING', at: 10_500, generation: 3, owner: ANNA });
  model.sort((one, other) => comparePositions(other, one));
  const filters: ((task: IndexedTask) => boolean)[] = [
    all,
    ({ contextId }) => contextId === 'c1',
    ({ state }) => state === 'TASK_STATE_FAILED',
    ({ taskId }) => taskId === 't7',
    () => false,
  ];
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...filters),
      fc.integer({ min: 40, max: 400 }),
      fc.integer({ min: 1, max: 2_000 }),
      async (matches, count, tasksMax) => {
        const { found } = await pages(lists, matches, count, tasksMax);
        assert.deepEqual(idsOf(found), idsOf(model.filter(matches)));
      },
    ),
    { numRuns: 20 },
  );
});

test('tasks in unread pages come before older tasks of another list', async () => {
  const log = createMemoryLog();
  const tasks = Array.from({ length: 3 * ENDED_NEWEST_MAX }, (_, n) => ended(n, n % 2 === 0 ? n : 100_000 + n));
  await store(log, 2, tasks);
  const { found } = await pages(listsOf(log), all, 5, 2_000);
  const newestFirst = tasks.toSorted((one, other) => other[3] - one[3]);
  assert.deepEqual(
    idsOf(found),
    newestFirst.map(([taskId]) => taskId),
  );
});

test('a task that is stored in several places is listed with its newest state', async () => {
  const log = createMemoryLog({ shards: 2 });
  // A relay adds an ended task to the list before it deletes its entry.
  const moved: EndedTask = ['moved', 'c', 'TASK_STATE_COMPLETED', 9, 5, 0];
  await addEnded(log.taskLists, listPrefixOf('moved', entry(), log.layouts), [moved]);
  await log.taskLists.put(listKeyOf('moved', entry(), log.layouts), entry());
  // A relay of the previous version writes only the index by task id.
  await log.leases.put('shard.0', { owner: 'old', checkpoint: 1 });
  await log.taskLists.put(listKeyOf('both', entry(), log.layouts), entry({ generation: 5 }));
  await log.tasks.put('both', entry());
  const lists = listsOf(log);
  const owned = await lists.of(ANNA);
  assert.deepEqual([owned.get('moved')?.generation, owned.get('both')?.generation], [5, 5]);
  lists.close();
});

test('a list reads at most a bounded number of stored pages for each of its pages', async () => {
  const log = createMemoryLog();
  await store(
    log,
    1,
    Array.from({ length: 6_000 }, (_, n) => ended(n)),
  );
  const lists = listsOf(log);
  const keys: string[] = [];
  const match = log.taskLists.match.bind(log.taskLists);
  log.taskLists.match = filters => {
    keys.push(...filters.filter(filter => /\.ended\.\d/.test(filter)));
    return match(filters);
  };
  const owned = await lists.of(ANNA);
  const none = await owned.select(() => false, ALL, { count: 51, tasksMax: 1 });
  assert.deepEqual([none.found, keys.length > 0, keys.length <= 16], [[], true, true]);
  assert.ok(none.unreadTo !== undefined && none.unreadTo > 0);
  keys.length = 0;
  await (await lists.of(ANNA)).select(all, ALL, { count: 51, tasksMax: 20_000 });
  assert.ok(keys.length <= 16, 'the newest tasks need at most one read of pages');
  keys.length = 0;
  await (await lists.of(ANNA)).select(all, { ...ALL, after: { at: 100, taskId: 't100' } }, { count: 51, tasksMax: 20_000 });
  assert.ok(keys.length <= 2, `${keys.length} pages for the oldest tasks`);
});

test('the total counts tasks in pages that were not read, and is absent once the log has removed a part of a page', async () => {
  const log = createMemoryLog();
  const tasks = Array.from(
    { length: ENDED_NEWEST_MAX + 1 },
    (_, n): EndedTask => [`t${n}`, 'c', 'TASK_STATE_COMPLETED', n, 3, n + 1],
  );
  await addEnded(log.taskLists, listPrefixOf('x', entry(), log.layouts), tasks);
  const totalWith = async (firstSeq: number) => {
    log.facts.extent = async () => toLogExtent([{ firstSeq, lastSeq: 1_000, fill: 0 }], log.layouts);
    const owned: OwnedTasks = await listsOf(log).of(ANNA);
    return owned.total(all);
  };
  assert.equal(await totalWith(1), tasks.length);
  assert.equal(await totalWith(2), undefined);
  assert.equal(await totalWith(tasks.length), 1, 'all of the page are gone');
});

test('the total is absent once a list may have dropped its oldest page, but present after retention has removed some tasks', async () => {
  const log = createMemoryLog();
  const prefix = listPrefixOf('x', entry(), log.layouts);
  const page = (n: number): EndedPageRange => ({ n, tasks: 192, from: n, to: n, seqFrom: 0, seqTo: 0 });
  const totalWith = async (length: number) => {
    const pages = Array.from({ length }, (_, at) => page(3 + at));
    await log.taskLists.put(endedKey(prefix), { v: 1, ended: [ended(1)], pages });
    return (await listsOf(log).of(ANNA)).total(all);
  };
  assert.equal(await totalWith(ENDED_PAGES_MAX - 1), (ENDED_PAGES_MAX - 1) * 192 + 1);
  assert.equal(await totalWith(ENDED_PAGES_MAX), undefined);
});

test('while a relay of the previous version owns a shard, its tasks are listed by their ids', async () => {
  const log = createMemoryLog({ shards: 2 });
  await log.leases.put('shard.0', { owner: 'new', checkpoint: 1, listed: true });
  await log.leases.put('shard.1', { owner: 'old', checkpoint: 1 });
  await log.tasks.put('of-the-old', entry({ state: 'TASK_STATE_COMPLETED' }));
  await putTask(log, 'of-both', entry({ at: 2 }));
  await log.tasks.put('of-another', entry({ owner: { subject: 'bert' } }));
  const lists = listsOf(log);
  const shown = async () => idsOf((await lists.of(ANNA)).newestFirst(all));
  assert.deepEqual(await shown(), ['of-both', 'of-the-old']);
  await log.tasks.put('later', entry({ at: 3 }));
  assert.deepEqual(await shown(), ['later', 'of-both', 'of-the-old']);
  lists.close();
});

test('without a lease, or with leases of this version, nothing is read by task id', async () => {
  const log = createMemoryLog({ shards: 2 });
  const watch = () => assert.fail('the index by task id was read');
  log.tasks.watch = watch;
  log.tasks.revision = watch;
  await log.taskLists.put(listKeyOf('open', entry(), Layouts.one(2)), entry());
  assert.deepEqual(idsOf((await listsOf(log).of(ANNA)).newestFirst(all)), ['open']);
  for (const shard of [0, 1]) await log.leases.put(`shard.${shard}`, { owner: 'new', checkpoint: 1, listed: true });
  assert.deepEqual(idsOf((await listsOf(log).of(ANNA)).newestFirst(all)), ['open']);
});

test('a state that this process has seen is listed until the lists have it, and only to its owner', async () => {
  const log = createMemoryLog();
  const lists = listsOf(log);
  lists.note('seen', entry({ generation: 4, at: 9 }));
  lists.note('seen', entry({ generation: 3 }));
  lists.note('role', entry({ role: 'agent.argocd' }));
  assert.deepEqual((await lists.of(ANNA)).get('seen')?.at, 9);
  assert.equal((await lists.of({ tenant: 't' })).get('seen'), undefined);
  await putTask(log, 'seen', entry({ generation: 5, at: 10, state: 'TASK_STATE_COMPLETED' }));
  assert.deepEqual((await lists.of(ANNA)).get('seen')?.at, 10);
  assert.deepEqual(idsOf((await lists.of(ANNA)).newestFirst(all)), ['seen']);
});
