import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isTerminal } from '@hopline/a2a';
import { Layouts, type Owner } from '@hopline/events';
import {
  addEnded,
  ENDED_ADDED_MAX,
  ENDED_NEWEST_KEPT,
  ENDED_NEWEST_MAX,
  ENDED_NEWEST_UNITS_MAX,
  ENDED_NEWEST_UNITS_MIN,
  type EndedTask,
  endedKey,
  endedPageKey,
  isEndedTasks,
  isTaskEntry,
  type LeaseValue,
  LISTED_TASK_BYTES_MAX,
  listKeyOf,
  listPrefixOf,
  ownerFilters,
  removedBefore,
  removeEnded,
  type TaskIndexEntry,
  toLogExtent,
} from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { until } from '../../../test/kit/until.ts';
import { EndedLists } from './ended-lists.ts';
import { kill, logger, relayOn, sendMessage, storedWhen, write, writerOf } from './relay.test-kit.ts';
import { ShardTasks } from './shard-tasks.ts';

const ROLE = 'agent.echo';
const COMPLETED = { kind: 'status', state: 'TASK_STATE_COMPLETED' } as const;
const WAITS = { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' } as const;

/** The tasks of a caller in the lists: those with an entry of their own, and those in the lists of ended tasks. */
async function listed(log: MemoryLog, owner: Owner = {}): Promise<{ entries: string[]; ended: string[] }> {
  const entries: string[] = [];
  const ended: string[] = [];
  for (const { key, value } of await log.taskLists.match(ownerFilters(ROLE, owner))) {
    if (isTaskEntry(value)) entries.push(key.slice(key.lastIndexOf('.') + 1));
    else if (isEndedTasks(value)) ended.push(...value.ended.map(([taskId]) => taskId));
  }
  return { entries: entries.sort(), ended: ended.sort() };
}

async function run(log: MemoryLog, taskId: string, end: typeof COMPLETED | typeof WAITS): Promise<void> {
  await sendMessage(log, taskId);
  await write(writerOf(log, { taskId }), end);
  await storedWhen(log, ({ aggregate }) => aggregate.state === end.state, taskId);
}

test('a task that has ended moves into the list of its owner, and its entry leaves nothing behind', async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log.another(), { moveMs: 20 });
  await Promise.all([run(log, 'done', COMPLETED), run(log, 'waits', WAITS)]);
  await until(async () => {
    const { entries, ended } = await listed(log);
    return entries.join() === 'waits' && ended.join() === 'done';
  });
  const { value } = (await log.taskLists.get(endedKey(listPrefixOf('done', { role: ROLE }, log.layouts))))!;
  assert.ok(isEndedTasks(value));
  const { record, seq } = (await log.facts.last('done'))!;
  const { state, generation } = record.aggregate;
  const [taskId, contextId, ...rest] = value.ended[0]!;
  assert.deepEqual([taskId, contextId, rest[0], rest[2], rest[3]], ['done', 'c', state, generation, seq]);
  await relay.stop();
});

test('a list moves when it has many ended tasks, or when its oldest one has waited long enough', async () => {
  const log = createMemoryLog();
  const ended = new EndedLists({ log, logger });
  ended.stop();
  const entry = { contextId: 'c', role: ROLE, state: COMPLETED.state, startSeq: 1, generation: 2, at: 1 } as const;
  const ofShard = (shard: number) =>
    Array.from({ length: 8_192 }, (_, n) => `t${n}`).filter(id => log.layouts.shardOf(id) === shard);
  const [many, few] = [ofShard(0).slice(0, 8), ofShard(1).slice(0, 7)];
  for (const taskId of [...many, ...few]) {
    const revision = await log.taskLists.create(listKeyOf(taskId, entry, log.layouts), entry);
    ended.add(taskId, { entry, revision });
  }
  await ended.move(60_000);
  assert.deepEqual(await listed(log), { entries: few.toSorted(), ended: many.toSorted() });
  await ended.move(0);
  assert.deepEqual(await listed(log), { entries: [], ended: [...many, ...few].toSorted() });
});

test('a task with an unknown sequence does not keep the other tasks of its page in the list', async () => {
  const { taskLists } = createMemoryLog();
  const tasks = Array.from({ length: ENDED_ADDED_MAX }, (_, n): EndedTask => [`t${n}`, 'c', COMPLETED.state, n, 1, n]);
  await addEnded(taskLists, 'p.o.00', tasks);
  const { value } = (await taskLists.get(endedKey('p.o.00')))!;
  assert.ok(isEndedTasks(value));
  assert.deepEqual([value.pages[0]?.seqFrom, value.pages[0]?.seqTo], [1, 0]);
  assert.equal(await removeEnded(taskLists, 'p.o.00', removedBefore(1_000)), tasks.length - 1);
  assert.equal(await removeEnded(taskLists, 'p.o.00', removedBefore(1_000)), 0);
});

test('tasks whose facts the log has lost are removed from the lists; a task that was folded again stays', async () => {
  const log = createMemoryLog({ shards: 1 });
  const relay = await relayOn(log.another());
  await run(log, 'folded', COMPLETED);
  await relay.stop();
  const ended = new EndedLists({ log, logger });
  ended.stop();
  // The stream of facts was created again, so it ends below the sequences of the earlier stream.
  const { lastSeq } = (await log.facts.extent()).ofShard(0);
  const ids = Array.from({ length: 2 * ENDED_NEWEST_MAX + 2 }, (_, n) => (n === 3 ? 'folded' : `t${n}`));
  const tasks = ids.map((id, n): EndedTask => [id, 'c', COMPLETED.state, n, 2, lastSeq + 1 + n]);
  for (let at = 0; at < tasks.length; at += ENDED_ADDED_MAX) await ended.store('a.b.00', tasks.slice(at, at + ENDED_ADDED_MAX));
  await ended.removeGone(0);
  const left = await log.taskLists.match(['a.b.00.ended', 'a.b.00.ended.*']);
  assert.deepEqual(
    left.flatMap(({ value }) => ('ended' in value ? value.ended.map(([id]) => id) : [])),
    ['folded'],
  );
});

test('a relay that takes over reads the open tasks of its shards, and moves what its predecessor left', async () => {
  const log = createMemoryLog();
  const processLog = log.another();
  const first = await relayOn(processLog, { moveMs: 3_600_000 });
  await Promise.all([run(log, 'done', COMPLETED), run(log, 'waits', WAITS)]);
  await until(async () => (await listed(log)).entries.length === 2);
  await until(async () => isTerminal((await log.tasks.get('done'))?.value.state ?? 'TASK_STATE_WORKING'));
  await kill(processLog, first);
  const second = await relayOn(log.another(), { moveMs: 20, inputTimeoutMs: 1 });
  await storedWhen(log, ({ aggregate }) => isTerminal(aggregate.state), 'waits');
  await until(async () => (await listed(log)).ended.join() === 'done,waits');
  assert.deepEqual((await listed(log)).entries, []);
  await second.stop();
});

/** An entry as relays of the previous version wrote it: by task id and not in a list. */
const entry = (more: Partial<TaskIndexEntry>): TaskIndexEntry => ({
  contextId: 'c',
  role: ROLE,
  state: 'TASK_STATE_COMPLETED',
  startSeq: 1,
  generation: 3,
  at: 1_000,
  ...more,
});

test('tasks of the previous version are listed when a relay takes their shard, and leases report it', async () => {
  const log = createMemoryLog({ shards: 2 });
  const owner = { tenant: 't', subject: 'anna' };
  for (let n = 0; n < 300; n += 1) await log.tasks.put(`done-${n}`, entry({ owner, at: n }));
  await log.tasks.put('waits', entry({ owner, state: 'TASK_STATE_INPUT_REQUIRED', inputRequest: { n: 1, at: Date.now() } }));
  await log.tasks.put('other', entry({}));
  for (const shard of [0, 1]) await log.leases.put(`shard.${shard}`, { owner: '', checkpoint: 0 });
  const relay = await relayOn(log.another(), { moveMs: 20 });
  const leases = async () => (await log.leases.match(['shard.*'])).map(({ value }) => value.listed);
  await until(async () => (await leases()).every(isListed => isListed === true));
  const { entries, ended } = await listed(log, owner);
  const pages = await log.taskLists.match(['*.*.*.ended.*']);
  const inPages = pages.flatMap(({ value }) => ('ended' in value ? value.ended.map(([taskId]) => taskId) : []));
  assert.deepEqual(entries, ['waits']);
  assert.equal(new Set([...ended, ...inPages]).size, 300);
  assert.deepEqual((await listed(log)).ended, ['other']);
  await relay.stop();
  assert.deepEqual(await leases(), [true, true], 'the next relay need not read the bucket');
});

test('a shard that a relay of the previous version has owned in between is read again', async () => {
  const log = createMemoryLog({ shards: 1 });
  const first = await relayOn(log.another());
  const lease = async () => (await log.leases.get('shard.0'))!.value;
  await until(async () => (await lease()).listed === true);
  await first.stop();
  const { listed: _listed, ...asBefore }: LeaseValue = await lease();
  await log.leases.put('shard.0', asBefore);
  await log.tasks.put('missed', entry({}));
  const second = await relayOn(log.another());
  await until(async () => (await lease()).listed === true);
  assert.deepEqual((await listed(log)).ended, ['missed']);
  await second.stop();
});

for (const when of ['while its relay runs', 'while no relay runs'] as const) {
  test(`tasks are listed again when the bucket of the lists is lost ${when}`, async () => {
    const log = createMemoryLog({ shards: 2 });
    const first = await relayOn(log.another(), { moveMs: 20, listsCheckMs: 20 });
    await Promise.all([run(log, 'done', COMPLETED), run(log, 'waits', WAITS)]);
    const isListed = async () => {
      const { entries, ended } = await listed(log);
      return entries.join() === 'waits' && ended.join() === 'done';
    };
    await until(isListed);
    const leases = async () => (await log.leases.match(['shard.*'])).map(({ value }) => value.listedIn);
    const { created } = await log.taskLists.extent();
    await until(async () => (await leases()).every(listedIn => listedIn === created));
    if (when === 'while no relay runs') await first.stop();
    log.loseTaskLists();
    const relay = when === 'while its relay runs' ? first : await relayOn(log.another(), { moveMs: 20, inputTimeoutMs: 1 });
    if (relay === first) {
      await until(isListed);
      await until(async () => (await leases()).every(listedIn => listedIn !== undefined && listedIn !== created));
      await sendMessage(log, 'waits', { messageId: 'answer' });
      await write(writerOf(log, { taskId: 'waits', turn: 2 }), COMPLETED);
    } else {
      // Only a task that the relay knows can reach its deadline.
      await storedWhen(log, ({ aggregate }) => isTerminal(aggregate.state), 'waits');
    }
    await until(async () => (await listed(log)).ended.join() === 'done,waits');
    assert.deepEqual((await listed(log)).entries, []);
    await relay.stop();
  });
}

test('the oldest tasks of a list become a page, and the list names it', async () => {
  const log = createMemoryLog();
  const ended = new EndedLists({ log, logger });
  ended.stop();
  const task = (n: number): EndedTask => [`t${n}`, 'c', 'TASK_STATE_COMPLETED', n, 3, n];
  const prefix = 'a.b.00';
  const unitsOf = (some: EndedTask[]) => JSON.stringify(some).length;
  const many = Array.from({ length: ENDED_NEWEST_MAX }, (_, n) => task(n + 1));
  const tasks = many.slice(0, many.findIndex((_, n) => unitsOf(many.slice(0, n + 1)) > ENDED_NEWEST_UNITS_MIN) + 1);
  await ended.store(prefix, tasks.slice(0, -1));
  const head = async () => {
    const found = (await log.taskLists.get(endedKey(prefix)))!.value;
    assert.ok(isEndedTasks(found));
    return found;
  };
  assert.deepEqual(await head(), { v: 1, ended: tasks.slice(0, -1), pages: [] });
  await ended.store(prefix, [task(3), ...tasks.slice(-1)]);
  const kept = (await head()).ended;
  const isQuarter = (some: EndedTask[]) => unitsOf(some) - 1 - some.length <= ENDED_NEWEST_UNITS_MIN / 4;
  const cut = tasks.length - kept.length;
  assert.deepEqual([isQuarter(kept), isQuarter(tasks.slice(cut - 1)), kept.length <= ENDED_NEWEST_KEPT], [true, false, true]);
  assert.deepEqual(await head(), {
    v: 1,
    ended: tasks.slice(cut),
    pages: [{ n: 1, tasks: cut, from: 1, to: cut, seqFrom: 1, seqTo: cut }],
  });
  assert.deepEqual((await log.taskLists.get(endedPageKey(prefix, 1)))?.value, { v: 1, ended: tasks.slice(0, cut) });
});

test('tasks whose facts are gone are removed from the lists and their pages, and an empty list leaves nothing behind', async () => {
  const log = createMemoryLog({ shards: 1 });
  const ended = new EndedLists({ log, logger });
  ended.stop();
  const task = (n: number): EndedTask => [`t${n}`, 'c', 'TASK_STATE_COMPLETED', n, 3, n];
  const tasks = Array.from({ length: 2 * ENDED_NEWEST_MAX + 2 }, (_, n) => task(n + 1));
  for (let at = 0; at < tasks.length; at += ENDED_ADDED_MAX) await ended.store('a.b.00', tasks.slice(at, at + ENDED_ADDED_MAX));
  const stored = async () => {
    const entries = await log.taskLists.match(['*.*.*.ended', '*.*.*.ended.*']);
    return entries
      .flatMap(({ value }) => ('ended' in value ? value.ended.map(([, , , at]) => at) : []))
      .toSorted((a, b) => a - b);
  };
  const before = (await log.taskLists.get(endedKey('a.b.00')))!.value;
  assert.ok(isEndedTasks(before) && before.pages.length >= 3);
  const removeBelow = async (firstSeq: number) => {
    log.facts.extent = async () => toLogExtent([{ firstSeq, lastSeq: 10_000, fill: 0 }], log.layouts);
    await ended.removeGone(0);
  };
  const [first, second] = before.pages;
  for (const firstSeq of [1, 2, first!.seqTo, second!.seqFrom, second!.seqFrom + 2, before.ended[1]![5]]) {
    await removeBelow(firstSeq);
    const seqs = tasks.map(([, , , , , seq]) => seq).filter(seq => seq >= firstSeq);
    assert.deepEqual(await stored(), seqs);
    const head = (await log.taskLists.get(endedKey('a.b.00')))!.value;
    assert.ok(isEndedTasks(head));
    const count = head.pages.reduce((sum, range) => sum + range.tasks, head.ended.length);
    assert.deepEqual([count, head.pages[0]?.seqFrom ?? head.ended[0]![5]], [seqs.length, firstSeq]);
  }
  await removeBelow(tasks.length + 1);
  assert.deepEqual(await log.taskLists.match(['*.*.*.ended', '*.*.*.ended.*']), []);
});

test('a relay looks again and again for tasks of its shards whose facts are gone', async () => {
  const log = createMemoryLog({ shards: 1 });
  const ended = new EndedLists({ log, logger });
  ended.stop();
  await ended.store('a.b.00', [['t', 'c', 'TASK_STATE_COMPLETED', 1, 3, 1]]);
  log.facts.extent = async () => toLogExtent([{ firstSeq: 2, lastSeq: 2, fill: 0 }], log.layouts);
  const tasks = new ShardTasks({ log, ended, now: () => 0, logger, onChange: () => {}, recheckMs: 1 });
  tasks.begin(0);
  await until(async () => (await log.taskLists.get(endedKey('a.b.00'))) === undefined);
  tasks.stop();
});

test('the newest part of a long list becomes a page at ENDED_NEWEST_UNITS_MAX, and a page stays below the largest message of NATS', async () => {
  const log = createMemoryLog();
  const ended = new EndedLists({ log, logger });
  ended.stop();
  const listed = { messages: 1, question: 'x'.repeat(LISTED_TASK_BYTES_MAX) };
  const task = (n: number): EndedTask => [`t${n}`, 'c', 'TASK_STATE_COMPLETED', n, 3, n, listed];
  const units = JSON.stringify([task(10)]).length;
  const fits = Math.floor(ENDED_NEWEST_UNITS_MAX / units);
  const head = async () => (await log.taskLists.get(endedKey('a.b.00')))!.value;
  const pages = Array.from({ length: 500 }, (_, n) => ({ n: n + 1, tasks: 1, from: 1e12, to: 1e12, seqFrom: 1, seqTo: 100_000 }));
  assert.ok(2 * JSON.stringify(pages).length >= ENDED_NEWEST_UNITS_MAX);
  await log.taskLists.put(endedKey('a.b.00'), { v: 1, ended: [], pages });
  await ended.store(
    'a.b.00',
    Array.from({ length: fits }, (_, n) => task(n + 10)),
  );
  const before = await head();
  assert.ok(isEndedTasks(before) && before.pages.length === pages.length && before.ended.length === fits);
  await ended.store(
    'a.b.00',
    Array.from({ length: ENDED_ADDED_MAX }, (_, n) => task(n + 10 + fits)),
  );
  const after = await head();
  assert.ok(isEndedTasks(after) && after.pages.length === pages.length + 1);
  assert.equal(after.ended.length + after.pages.at(-1)!.tasks, fits + ENDED_ADDED_MAX);
  assert.ok(after.ended.length >= 1 && JSON.stringify(after.ended).length <= ENDED_NEWEST_UNITS_MAX / 4);
  const page = await log.taskLists.get(endedPageKey('a.b.00', pages.length + 1));
  assert.ok(Buffer.byteLength(JSON.stringify(page!.value)) < 512 * 1024);
});

test('an entry whose message was never stored is removed, and one that missed the end of its task is written again', async () => {
  const log = createMemoryLog({ shards: 1 });
  const first = await relayOn(log.another(), { moveMs: 20 });
  await run(log, 'done', COMPLETED);
  await until(async () => (await listed(log)).ended.join() === 'done');
  await first.stop();
  const submitted = entry({ state: 'TASK_STATE_SUBMITTED', generation: 0, startSeq: 0, at: 1 });
  for (const taskId of ['done', 'never']) await log.taskLists.put(listKeyOf(taskId, submitted, Layouts.one(1)), submitted);
  const second = await relayOn(log.another(), { moveMs: 20 });
  await until(async () => (await listed(log)).entries.length === 0);
  assert.deepEqual((await listed(log)).ended, ['done']);
  await second.stop();
});

test('an entry stays if it was written later than the one that moves into the list', async () => {
  const log = createMemoryLog({ shards: 1 });
  const ended = new EndedLists({ log, logger });
  ended.stop();
  const key = listKeyOf('t', entry({}), log.layouts);
  const revision = await log.taskLists.put(key, entry({ generation: 3 }));
  ended.add('t', { entry: entry({ generation: 3 }), revision });
  await log.taskLists.put(key, entry({ generation: 4 }));
  await ended.move(0);
  assert.deepEqual((await listed(log)).ended, ['t']);
  assert.deepEqual((await log.taskLists.get(key))?.value, entry({ generation: 4 }));
});

test('an entry that was read before a later one was written does not replace it', async () => {
  const log = createMemoryLog({ shards: 1 });
  const ended = new EndedLists({ log, logger });
  ended.stop();
  const tasks = new ShardTasks({ log, ended, now: () => 0, logger, onChange: () => {} });
  tasks.begin(0);
  const later = { entry: entry({ state: 'TASK_STATE_WORKING', generation: 2 }), revision: 2 };
  tasks.apply('t', later);
  tasks.apply('t', { entry: entry({ state: 'TASK_STATE_SUBMITTED', generation: 1 }), revision: 1 });
  assert.deepEqual([...tasks.open], [['t', later]]);
  tasks.stop();
});
