import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Layouts, shardOf } from '@hopline/events';
import { type Log, LogMismatch } from '@hopline/log';
import { factRecord, inputRecord } from '@hopline/log/test-kit';
import {
  authorization,
  type LogEvent,
  type LogUser,
  openJetStreamLog,
  type ServerUser,
  serverUsers,
} from '@hopline/log-jetstream';
import { replayFacts } from '@hopline/replay';
import { uuidv7 } from 'uuidv7';
import { succeeds } from '../../kit/succeeds.ts';
import { until } from '../../kit/until.ts';
import { startNats } from '../../support/nats/nats-server.ts';
import { startedLog } from './started-log.ts';

/** A layout begins after this time, so that a test need not wait for minutes. */
const TIMES = { pollMs: 20, aheadMs: 5_000 };
const WANTED = [{ shards: 8, groups: 2 }];
/** A log with this option adds the layouts after the first one. */
const ADDS = { addsLayouts: { wanted: WANTED, isAdder: () => true } };

async function append(log: Log, taskId: string, generation: number, expected = 0): Promise<number> {
  await log.inputs.append(taskId, inputRecord(generation), { id: `${taskId}:${generation}` });
  const { seq } = await log.facts.append(factRecord(taskId, generation, expected), {
    expected,
    id: `${taskId}:me:${generation}`,
  });
  return seq;
}

async function generationsOf(log: Log, taskId: string): Promise<number[]> {
  const generations: number[] = [];
  for await (const { record } of log.facts.read(taskId, 1)) generations.push(record.aggregate.generation);
  return generations;
}

/** Resolves when the newest layout has begun. */
const begun = (log: Log) => until(() => Date.now() > log.layouts.newest.begins);

test('running processes take a new layout, new tasks are in its streams, and open ones stay where they are', async t => {
  const { jsm, open } = await startedLog(t, { layoutTimes: TIMES });
  const [relay, ingress] = [await open({ shards: 4, ...ADDS }), await open({ user: 'ingress' })];
  const before = uuidv7();
  const firstSeq = await append(relay, before, 1);
  const stop = new AbortController();
  const followed = await ingress.facts.follow(before, firstSeq, stop.signal);
  const inputs = ingress.inputs.readShard(shardOf(before, relay.layouts), 1, stop.signal)[Symbol.asyncIterator]();
  assert.equal((await inputs.next()).value?.seq, 1);
  await until(() => relay.layouts.list.length === 2 && ingress.layouts.list.length === 2);
  assert.deepEqual(ingress.layouts.list, relay.layouts.list);
  assert.deepEqual([relay.shards, relay.layouts.groups], [12, 3]);
  await begun(relay);
  // A task that was open when the layout began continues in its stream, for earlier and for later readers.
  await append(relay, before, 2, firstSeq);
  assert.equal((await inputs.next()).value?.taskId, before);
  for await (const { record } of followed) {
    assert.equal(record.aggregate.generation, 2);
    break;
  }
  stop.abort();
  const after = Array.from({ length: 40 }, () => uuidv7());
  for (const taskId of after) await append(ingress, taskId, 1);
  const messages = async (name: string) => (await jsm.streams.info(name)).state.messages;
  const counts = await Promise.all(['A2A_LOG', 'A2A_LOG_1', 'A2A_LOG_2', 'A2A_RAW', 'A2A_RAW_1', 'A2A_RAW_2'].map(messages));
  assert.deepEqual([counts[0], counts[1]! + counts[2]!, counts[3], counts[4]! + counts[5]!], [2, 40, 2, 40]);
  for (const log of [relay, ingress, await open(), await open({ user: 'operator' })]) {
    assert.deepEqual(await generationsOf(log, before), [1, 2]);
    assert.equal((await log.facts.lastOfEach([before, ...after])).size, 41);
    const replayed = new Map<string, number>();
    for await (const { taskId } of replayFacts(log)) replayed.set(taskId, (replayed.get(taskId) ?? 0) + 1);
    assert.deepEqual(replayed, new Map([[before, 2], ...after.map(taskId => [taskId, 1] as const)]));
  }
});

test('the streams of a layout share the bytes of the first layout, and bind the subjects of its shards', async t => {
  const { jsm, open } = await startedLog(t, { layoutTimes: TIMES });
  const log = await open({ shards: 4, maxBytes: { facts: 96 * 1024 ** 2 }, ...ADDS });
  await until(() => log.layouts.list.length === 2);
  const config = async (name: string) => (await jsm.streams.info(name)).config;
  const [raw, facts, second, leases] = await Promise.all(['A2A_RAW', 'A2A_LOG', 'A2A_LOG_2', 'KV_hopline_leases'].map(config));
  assert.deepEqual(raw!.subjects, ['a2a.raw.00.>', 'a2a.raw.01.>', 'a2a.raw.02.>', 'a2a.raw.03.>']);
  assert.deepEqual(second!.subjects, ['a2a.log.05.*', 'a2a.log.07.*', 'a2a.log.09.*', 'a2a.log.0b.*']);
  assert.deepEqual([facts!.max_bytes, second!.max_bytes], [96 * 1024 ** 2, 48 * 1024 ** 2]);
  assert.deepEqual(second!.republish, facts!.republish);
  const { begins } = log.layouts.newest;
  const description = `hopline format=1 shards=4 layouts=8/2@${begins}`;
  assert.deepEqual([raw!.description, facts!.description], [description, description]);
  assert.deepEqual([second!.description, leases!.description], ['hopline format=1 shards=4', 'hopline format=1 shards=4']);
});

test('a layout is added once, by the process that may, and others that start later take it', async t => {
  const { open } = await startedLog(t, { layoutTimes: TIMES });
  const wanted = [...WANTED, { shards: 2, groups: 1 }];
  const first = await open({ shards: 4, addsLayouts: { wanted, isAdder: () => true } });
  const other = await open({ addsLayouts: { wanted, isAdder: () => false } });
  await until(() => first.layouts.list.length === 3 && other.layouts.list.length === 3);
  // The second one was added only after the first one had begun.
  const [, one, two] = first.layouts.list;
  assert.ok(two!.begins >= one!.begins + TIMES.aheadMs);
  assert.deepEqual((await open({ user: 'ingress' })).layouts.list, first.layouts.list);
  const contrary = { wanted: [{ shards: 9, groups: 1 }], isAdder: () => true };
  await assert.rejects(open({ addsLayouts: contrary }), (error: Error) => {
    assert.ok(error instanceof LogMismatch);
    assert.match(error.message, /HOPLINE_LAYOUTS is 9\/1, and the log has 8\/2,2\/1: layouts are never changed/);
    return true;
  });
  await assert.rejects(
    open({ shards: 5 }),
    /description "hopline format=1 shards=4 layouts=.*, expected "hopline format=1 shards=5/,
  );
});

test('services start between the steps of adding a layout, and a relay completes its copies', async t => {
  const { jsm, open } = await startedLog(t, { layoutTimes: TIMES });
  const log = await open({ shards: 4 });
  const taskId = uuidv7();
  await append(log, taskId, 1);
  const shards = ['00', '01', '02', '03'];
  await jsm.streams.update('A2A_RAW', { subjects: shards.map(shard => `a2a.raw.${shard}.>`) });
  for (const user of ['relay', 'ingress']) assert.equal((await open({ user })).shards, 4);
  await jsm.streams.update('A2A_LOG', { subjects: shards.map(shard => `a2a.log.${shard}.*`) });
  for (const user of ['relay', 'ingress']) assert.deepEqual(await generationsOf(await open({ user }), taskId), [1]);
  const description = `hopline format=1 shards=4 layouts=8/2@${Date.now()}`;
  await jsm.streams.update('A2A_RAW', { description });
  assert.equal((await open({ user: 'relay' })).shards, 12);
  for (const name of ['A2A_LOG', 'A2A_WORK']) assert.equal((await jsm.streams.info(name)).config.description, description);
  // The copies keep the layouts if the first stream is lost.
  await jsm.streams.delete('A2A_RAW');
  assert.equal((await open({ user: 'relay' })).shards, 12);
  assert.equal((await jsm.streams.info('A2A_RAW')).config.description, description);
});

test('a process that has not read the layouts for minutes refuses a new task, continues open ones, and reads them at once', async t => {
  const { open } = await startedLog(t, { layoutTimes: TIMES });
  const earlier = uuidv7();
  const log = await open({ shards: 4, layoutTimes: { pollMs: 3_600_000, aheadMs: 500 } });
  const seq = await append(log, earlier, 1);
  const isRefused = (error: Error) => error.name === 'LogUnavailable' && error.message.includes('layouts of the log');
  await until(() => append(log, uuidv7(), 1).then(() => false, isRefused));
  await append(log, earlier, 2, seq);
  await append(log, 'chosen-by-a-client', 1);
  assert.deepEqual(await generationsOf(log, earlier), [1, 2]);
  // The next regular reading is in an hour.
  await until(() => succeeds(append(log, uuidv7(), 1)));
});

test('every service may read and write the streams of a later layout if the permissions name them', async t => {
  const users = new Map<ServerUser, { text: string }>(serverUsers(['guide']).map(user => [user, { text: `secret-${user}` }]));
  const server = await startNats({ config: authorization(users, { prefix: 'blue', groups: 3 }) });
  t.after(() => server.stop());
  const denied: string[] = [];
  const openAs = async (user: LogUser, options = {}) => {
    const log = await openJetStreamLog({
      servers: server.url,
      name: user,
      user,
      prefix: 'blue',
      credentials: { user: `blue.${user}`, pass: `secret-${user}` },
      layoutTimes: TIMES,
      onEvent: (event: LogEvent) => void ('message' in event && denied.push(event.message)),
      ...options,
    });
    t.after(() => log.close());
    return log;
  };
  const relay = await openAs('relay', { shards: 4, ...ADDS });
  const others = ['ingress', 'supervisor', 'notifier', 'operator', 'agent.guide'] as const;
  const logs = await Promise.all(others.map(user => openAs(user)));
  await until(() => [relay, ...logs].every(({ layouts }) => layouts.list.length === 2));
  await begun(relay);
  const taskId = uuidv7();
  const record = factRecord(taskId, 1);
  // The agent may read a task that it serves.
  record.aggregate.role = 'agent.guide';
  await relay.facts.append(record, { expected: 0, id: `${taskId}:me:1` });
  for (const log of logs) {
    await log.check();
    assert.deepEqual(await generationsOf(log, taskId), [1]);
  }
  assert.ok(relay.layouts instanceof Layouts && relay.layouts.shardOf(taskId) >= 4);
  assert.deepEqual(denied, []);
});
