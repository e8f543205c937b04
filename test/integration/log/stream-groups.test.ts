import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type FactRecord, Layouts, SHARDS_DEFAULT, shardOf } from '@hopline/events';
import { defineConfig } from '@hopline/lifecycle';
import { type Log, LogMismatch } from '@hopline/log';
import { factRecord, inputRecord } from '@hopline/log/test-kit';
import {
  authorization,
  backUpFromSettings,
  LOG_SETTINGS,
  LogNames,
  type LogUser,
  openJetStreamLog,
  restoreFromSettings,
  type ServerUser,
  serverUsers,
} from '@hopline/log-jetstream';
import { startNats } from '../../support/nats/nats-server.ts';
import { type StartedLog, startedLog } from './started-log.ts';

const SHARDS = 8;
const LAYOUTS = Layouts.one(SHARDS);
const GROUPS = 3;
const MIB = 1024 * 1024;

/** One task of each shard, with a record of inputs and two of facts. */
async function fill(log: Log): Promise<string[]> {
  const byShard = new Map<number, string>();
  for (let n = 0; byShard.size < log.shards; n += 1) byShard.set(shardOf(`t${n}`, log.layouts), `t${n}`);
  for (const taskId of byShard.values()) {
    await log.inputs.append(taskId, inputRecord(1), { id: `${taskId}:1` });
    const { seq } = await log.facts.append(factRecord(taskId, 1), { expected: 0, id: `${taskId}:me:1` });
    await log.facts.append(factRecord(taskId, 2, seq), { expected: seq, id: `${taskId}:me:2` });
  }
  return [...byShard.values()];
}

/** Generations of the facts of each task, in the order of `taskIds`. */
function stored(log: Log, taskIds: readonly string[]): Promise<number[][]> {
  return Promise.all(
    taskIds.map(async taskId => {
      const generations: number[] = [];
      for await (const { record } of log.facts.read(taskId, 1)) generations.push(record.aggregate.generation);
      return generations;
    }),
  );
}

test('each stream of a group binds the subjects of its shards and takes its share of the bytes', async t => {
  const { jsm, open } = await startedLog(t);
  const log = await open({ shards: SHARDS, groups: GROUPS, maxBytes: { facts: 96 * MIB, inputs: 24 * MIB } });
  const taskIds = await fill(log);
  const config = async (name: string) => (await jsm.streams.info(name)).config;
  const [raw, second, facts] = await Promise.all(['A2A_RAW', 'A2A_RAW_1', 'A2A_LOG_2'].map(config));
  assert.deepEqual(raw!.subjects, ['a2a.raw.00.>', 'a2a.raw.03.>', 'a2a.raw.06.>']);
  assert.deepEqual(second!.subjects, ['a2a.raw.01.>', 'a2a.raw.04.>', 'a2a.raw.07.>']);
  assert.deepEqual(facts!.subjects, ['a2a.log.02.*', 'a2a.log.05.*']);
  assert.deepEqual(facts!.republish, { src: 'a2a.log.>', dest: 'a2a.live.>' });
  // A share of the inputs would be too small for the largest records.
  assert.deepEqual([raw!.max_bytes, facts!.max_bytes], [16 * MIB, 32 * MIB]);
  assert.equal(facts!.description, 'hopline format=1 shards=8 groups=3');
  const messages = async (name: string) => (await jsm.streams.info(name)).state.messages;
  assert.deepEqual(await Promise.all(new LogNames('', GROUPS).factsStreams.map(messages)), [6, 6, 4]);
  const extent = await log.facts.extent();
  assert.deepEqual([extent.firstSeq, extent.lastSeq, extent.ofShard(5).lastSeq, extent.bytesMax], [1, 6, 4, 96 * MIB]);
  assert.deepEqual(await stored(log, taskIds), Array(SHARDS).fill([1, 2]));
  assert.deepEqual(new Set((await log.facts.lastOfEach(taskIds)).keys()), new Set(taskIds));
});

test('a service takes the number of groups from the streams, and refuses another one', async t => {
  const { open } = await startedLog(t);
  await open({ shards: SHARDS, groups: GROUPS });
  for (const options of [{}, { user: 'relay' }, { user: 'ingress' }, { groups: GROUPS }]) {
    const { shards, groups } = (await open(options)).layouts;
    assert.deepEqual({ shards, groups }, { shards: SHARDS, groups: GROUPS });
  }
  await assert.rejects(open({ groups: 2 }), (error: Error) => {
    assert.ok(error instanceof LogMismatch);
    assert.match(
      error.message,
      /description "hopline format=1 shards=8 groups=3", expected "hopline format=1 shards=8 groups=2"/,
    );
    return true;
  });
  await assert.rejects(open({ groups: 9 }), /9 stream groups need at least as many shards, and the layout has 8/);
  for (const groups of [0, 17, 1.5]) await assert.rejects(open({ groups }), LogMismatch);
});

test('the streams of a log from before groups stay as they are, and more groups are refused', async t => {
  const { jsm, open } = await startedLog(t);
  await open();
  const { config } = await jsm.streams.info('A2A_LOG');
  assert.deepEqual([config.description, config.subjects], [`hopline format=1 shards=${SHARDS_DEFAULT}`, ['a2a.log.>']]);
  await assert.rejects(open({ groups: 4 }), /has description "hopline format=1 shards=256", expected .* groups=4/);
  assert.equal((await open({ groups: 1 })).layouts.groups, 1);
});

test('the missing stream of inputs of one group is created above its old sequences, and no other', async t => {
  const { jsm, open } = await startedLog(t);
  const rebuilt: string[] = [];
  const options = {
    shards: SHARDS,
    groups: GROUPS,
    onEvent: (event: { type: string; stream?: string }) => {
      if (event.type === 'inputs-rebuilt') rebuilt.push(event.stream!);
    },
  };
  const log = await open(options);
  await fill(log);
  await jsm.streams.delete('A2A_RAW_1');
  const again = await open(options);
  assert.deepEqual(rebuilt, ['A2A_RAW_1']);
  const extent = await again.inputs.extent();
  assert.deepEqual([extent.ofShard(0).firstSeq, extent.ofShard(1).firstSeq > 1_000_000_000_000_000], [1, true]);
});

test('a backup has the streams of all groups, and a restored log has every record', async t => {
  const [source, target] = [await startedLog(t), await startedLog(t)];
  const taskIds = await fill(await source.open({ shards: SHARDS, groups: GROUPS }));
  const home = mkdtempSync(join(tmpdir(), 'hopline-groups-'));
  t.after(() => rmSync(home, { recursive: true }));
  const folder = join(home, 'backup');
  const settingsOf = ({ server }: StartedLog) => defineConfig(LOG_SETTINGS).load({ NATS_URL: server.url });
  const names: string[] = [];
  await backUpFromSettings(settingsOf(source), { folder, onStream: ({ name }) => void names.push(name) });
  const { inputsStreams, factsStreams, workStream } = new LogNames('', GROUPS);
  assert.deepEqual(
    names.filter(name => !name.startsWith('KV_')),
    [...factsStreams, workStream, ...inputsStreams],
  );
  await restoreFromSettings(settingsOf(target), { folder, onStream: () => {} });
  const restored = await target.open();
  assert.deepEqual([restored.layouts.groups, await stored(restored, taskIds)], [GROUPS, Array(SHARDS).fill([1, 2])]);
});

/** A record of a task that an agent serves, because it may read no other one. */
const ofAgent = (record: FactRecord): FactRecord => ({ ...record, aggregate: { ...record.aggregate, role: 'agent.guide' } });

test('every service may use the streams of all groups, and nothing is denied', async t => {
  const users = new Map<ServerUser, { text: string }>(serverUsers(['guide']).map(user => [user, { text: `secret-${user}` }]));
  const server = await startNats({ config: authorization(users, { prefix: 'blue', groups: GROUPS }) });
  t.after(() => server.stop());
  const denied: string[] = [];
  const openAs = async (user: LogUser) => {
    const log = await openJetStreamLog({
      servers: server.url,
      name: user,
      user,
      prefix: 'blue',
      credentials: { user: `blue.${user}`, pass: `secret-${user}` },
      ...(user === 'relay' && { shards: SHARDS, groups: GROUPS, removesUnknown: { keptConsumers: [] } }),
      onEvent: event => void (event.type === 'denied' && denied.push(event.message)),
    });
    t.after(() => log.close());
    return log;
  };
  const relay = await openAs('relay');
  const byShard = new Map<number, string>();
  for (let n = 0; byShard.size < SHARDS; n += 1) byShard.set(shardOf(`t${n}`, LAYOUTS), `t${n}`);
  const taskIds = [...byShard.values()];
  for (const taskId of taskIds) await relay.facts.append(ofAgent(factRecord(taskId, 1)), { expected: 0, id: `${taskId}:me:1` });
  for (const user of ['ingress', 'supervisor', 'notifier', 'operator', 'agent.guide'] as const) {
    const log = await openAs(user);
    await log.check();
    assert.deepEqual(await stored(log, taskIds), Array(SHARDS).fill([1]), user);
    const signal = AbortSignal.timeout(10_000);
    for (const taskId of user === 'operator' ? [] : taskIds)
      for await (const { record } of await log.facts.follow(taskId, 0, signal)) {
        assert.equal(record.aggregate.taskId, taskId);
        break;
      }
  }
  const ingress = await openAs('ingress');
  assert.equal((await ingress.facts.lastOfEach(taskIds)).size, SHARDS);
  for (const taskId of taskIds) for await (const _ of ingress.inputs.read(taskId)) assert.fail('no inputs');
  assert.deepEqual(denied, []);
});
