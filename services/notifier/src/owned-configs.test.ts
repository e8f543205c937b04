import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Layouts, shardOf } from '@hopline/events';
import type { PushConfigEntry } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { until } from '../../../test/kit/until.ts';
import { OwnedConfigs } from './owned-configs.ts';

const SHARDS = 2;
const LAYOUTS = Layouts.one(SHARDS);
const settled = () => new Promise(resolve => setTimeout(resolve, 20));

/** One task of each shard. */
const [FIRST, SECOND] = [0, 1].map(shard => {
  for (let n = 0; ; n += 1) if (shardOf(`t${n}`, LAYOUTS) === shard) return `t${n}`;
}) as [string, string];

const keyOf = (taskId: string, id = 'cfg') => `${taskId}.${Buffer.from(id).toString('base64url')}`;

const entry = (taskId: string, id: string): PushConfigEntry => ({
  taskId,
  id,
  url: 'https://hooks.example/',
  dialect: '1.0',
  after: 0,
});

async function put(log: MemoryLog, taskId: string, id = 'cfg'): Promise<string> {
  await log.pushConfigs.put(keyOf(taskId, id), entry(taskId, id));
  return keyOf(taskId, id);
}

async function open(t: TestContext, log: MemoryLog, onError: (error: unknown) => void = error => assert.fail(error as Error)) {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const wanted = new Set<string>();
  const configs = new OwnedConfigs({
    log,
    signal: stop.signal,
    start: key => void wanted.add(key),
    cancel: key => void wanted.delete(key),
    running: () => wanted,
    onError,
    markerMs: 1,
  });
  await configs.start();
  return { configs, wanted };
}

test('a shard that starts while the scan for another one ends is scanned as well', async t => {
  for (let ticks = 0; ticks < 60; ticks += 1) {
    const log = createMemoryLog({ shards: SHARDS });
    const [one, other] = [await put(log, FIRST), await put(log, SECOND)];
    const { configs, wanted } = await open(t, log);
    configs.startShard(0);
    for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
    configs.startShard(1);
    await until(() => wanted.size === 2, `both configurations, ${ticks} ticks later`);
    assert.deepEqual([...wanted].toSorted(), [one, other].toSorted(), `${ticks} ticks later`);
  }
});

test('a shard that is lost and acquired again during its scan is scanned again', async t => {
  const log = createMemoryLog({ shards: SHARDS });
  const before = await put(log, FIRST, 'before');
  const { configs, wanted } = await open(t, log);
  const reading = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const { pushProgress } = log;
  const watch = pushProgress.watch.bind(pushProgress);
  let held = false;
  pushProgress.watch = async function* (signal) {
    for await (const change of watch(signal)) {
      if (!held && change.type === 'ready') {
        held = true;
        reading.resolve();
        await goOn.promise;
      }
      yield change;
    }
  };
  configs.startShard(0);
  await reading.promise;
  configs.stopShard(0);
  const between = await put(log, FIRST, 'between');
  await settled();
  assert.deepEqual([...wanted], []);
  // Makes sure that the scan in progress does not see the new configuration.
  const { pushConfigs } = log;
  const watchConfigs = pushConfigs.watch.bind(pushConfigs);
  let stale = true;
  pushConfigs.watch = async function* (signal) {
    const hides = stale;
    stale = false;
    for await (const change of watchConfigs(signal))
      if (!hides || change.type !== 'entry' || change.key !== between) yield change;
  };
  configs.startShard(0);
  goOn.resolve();
  await until(() => wanted.size === 2);
  assert.deepEqual([...wanted].toSorted(), [before, between].toSorted());
});

test('a scan leaves out a finished configuration, but finds one that was written under its id later', async t => {
  const log = createMemoryLog({ shards: SHARDS });
  const [over, again] = [await put(log, FIRST, 'over'), await put(log, FIRST, 'again')];
  for (const key of [over, again]) {
    const { revision } = (await log.pushConfigs.get(key))!;
    await log.pushProgress.put(key, { config: revision, generation: 1, seq: 1, failures: 0, over: 'delivered' });
  }
  await put(log, FIRST, 'again');
  const { configs, wanted } = await open(t, log);
  configs.startShard(0);
  await until(() => wanted.size > 0);
  await settled();
  assert.deepEqual([...wanted], [again]);
});

test('changes made while a watch was lost are found by one scan, without a read per finished configuration', async t => {
  const log = createMemoryLog({ shards: SHARDS });
  const [over, open_] = [await put(log, FIRST, 'over'), await put(log, FIRST, 'open')];
  const { revision } = (await log.pushConfigs.get(over))!;
  await log.pushProgress.put(over, { config: revision, generation: 1, seq: 1, failures: 0, over: 'delivered' });
  const { pushConfigs } = log;
  const watch = pushConfigs.watch.bind(pushConfigs);
  const lost = Promise.withResolvers<never>();
  let isFirst = true;
  pushConfigs.watch = async function* (signal) {
    if (!isFirst) return yield* watch(signal);
    isFirst = false;
    const changes = watch(signal)[Symbol.asyncIterator]();
    for (;;) {
      const { done, value } = await Promise.race([changes.next(), lost.promise]);
      if (done === true) return;
      yield value;
    }
  };
  const faults: unknown[] = [];
  const { configs, wanted } = await open(t, log, error => faults.push(error));
  configs.startShard(0);
  await until(() => wanted.size > 0);
  await settled();
  assert.deepEqual([...wanted], [open_]);
  lost.reject(new Error('log unavailable'));
  await until(() => faults.length > 0);
  const meanwhile = await put(log, FIRST, 'meanwhile');
  await log.pushConfigs.delete(open_);
  await until(
    () => wanted.has(meanwhile) && !wanted.has(open_),
    () => [...wanted].join(),
  );
  await settled();
  assert.deepEqual([[...wanted], faults.length], [[meanwhile], 1]);
});

test('nothing is left of a deleted configuration in an owned shard; if it was set again, it stays, with its progress', async t => {
  const log = createMemoryLog({ shards: SHARDS });
  const { configs, wanted } = await open(t, log);
  configs.startShard(0);
  const [deleted, again] = [await put(log, FIRST, 'deleted'), await put(log, FIRST, 'again')];
  await until(() => wanted.size === 2);
  const progress = { generation: 1, seq: 1, failures: 0 };
  await log.pushProgress.put(deleted, { ...progress, config: 1 });
  await log.pushConfigs.delete(deleted);
  await log.pushConfigs.delete(again);
  const revision = await log.pushConfigs.put(again, entry(FIRST, 'again'));
  await log.pushProgress.put(again, { ...progress, config: revision });
  const isEmptyBefore = async () => (await log.pushConfigs.extent()).firstSeq === revision;
  await until(async () => (await isEmptyBefore()) && (await log.pushProgress.get(deleted)) === undefined);
  await settled();
  assert.deepEqual([...wanted], [again]);
  assert.equal((await log.pushConfigs.get(again))?.revision, revision);
  assert.equal((await log.pushProgress.get(again))?.value.config, revision);
});

test('the marker of a deleted configuration of another shard stays for its owner', async t => {
  const log = createMemoryLog({ shards: SHARDS });
  const { configs } = await open(t, log);
  configs.startShard(0);
  await put(log, FIRST);
  await log.pushConfigs.delete(keyOf(FIRST));
  await put(log, SECOND);
  await log.pushConfigs.delete(keyOf(SECOND));
  const ofOther = await log.pushConfigs.revision();
  await until(async () => (await log.pushConfigs.extent()).firstSeq >= ofOther);
  await settled();
  assert.equal((await log.pushConfigs.extent()).firstSeq, ofOther);
});

test('while a bucket is read from the beginning, memory does not grow with the webhooks of other shards', async t => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const held = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const log = createMemoryLog({ shards: SHARDS });
  const value = entry('other', 'cfg');
  let grown = 0;
  log.pushConfigs.watch = async function* (signal) {
    const before = held();
    for (let n = 0; n < 30_000; n += 1)
      yield { type: 'entry', key: `00000000-0000-7000-8000-${`${n}`.padStart(12, '0')}.Y2Zn`, value, revision: n + 1 };
    grown = held() - before;
    yield { type: 'ready' };
    await new Promise(resolve => signal.addEventListener('abort', resolve));
  };
  await open(t, log);
  assert.ok(grown < 1_000_000, `${grown} bytes`);
});
