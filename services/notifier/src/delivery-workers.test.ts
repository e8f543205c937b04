import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../../test/kit/until.ts';
import { type DeliveryEnd, DeliveryWorkers, type DeliveryWorkersOptions, type WorkerSignals } from './delivery-workers.ts';

type Run = { key: string; signals: WorkerSignals; end: (reason: DeliveryEnd) => void; fail: (error: Error) => void };

const tick = () => new Promise(resolve => setImmediate(resolve));

function workersOf(options: Partial<DeliveryWorkersOptions> = {}) {
  const runs: Run[] = [];
  const workers = new DeliveryWorkers({
    workersMax: 2,
    onError: () => 0,
    run: (key, signals) => new Promise((end, fail) => runs.push({ key, signals, end, fail })),
    ...options,
  });
  return { workers, runs, keys: () => runs.map(run => run.key) };
}

test('the number of running workers is bounded; when one ends, the one that has waited longest begins', async () => {
  const { workers, runs, keys } = workersOf();
  for (const key of ['a', 'b', 'c', 'd']) workers.start(key, 0, 1);
  await tick();
  assert.deepEqual(keys(), ['a', 'b']);
  assert.equal(runs[0]!.signals.mustYield(), true);
  runs[1]!.end('finished');
  await tick();
  assert.deepEqual(keys(), ['a', 'b', 'c']);
  assert.equal(workers.size, 3);
});

test('a worker that yields goes to the end of the queue', async () => {
  const { workers, runs, keys } = workersOf({ workersMax: 1 });
  for (const key of ['a', 'b']) workers.start(key, 0, 1);
  await tick();
  runs[0]!.end('yielded');
  await tick();
  runs[1]!.end('yielded');
  await tick();
  assert.deepEqual(keys(), ['a', 'b', 'a']);
});

test('a worker that waits for a retry, or failed, holds no slot and runs again at its time', async () => {
  const { workers, runs, keys } = workersOf({ workersMax: 1, onError: () => 20 });
  for (const key of ['a', 'b']) workers.start(key, 0, 1);
  await tick();
  runs[0]!.end({ retryMs: 20 });
  await tick();
  assert.deepEqual(keys(), ['a', 'b']);
  runs[1]!.fail(new Error('log unavailable'));
  await until(() => {
    runs[2]?.end('finished');
    return runs.length >= 4;
  });
  assert.deepEqual(keys().slice(2).sort(), ['a', 'b']);
  const waited = runs.slice(2).map(({ key, signals }) => [key, signals.hasWaited]);
  assert.deepEqual(Object.fromEntries(waited), { a: true, b: false });
});

test('the workers report since when the longest failing webhook has failed', async () => {
  const { workers, runs } = workersOf();
  for (const key of ['a', 'b']) workers.start(key, 0, 1);
  await tick();
  assert.equal(workers.failingSince, undefined);
  runs[0]!.end({ retryMs: 60_000, failingSince: 2_000 });
  runs[1]!.end({ retryMs: 60_000, failingSince: 1_000 });
  await tick();
  assert.equal(workers.failingSince, 1_000);
  // Either another process now has its shard, or its task is over.
  workers.cancel('b');
  assert.equal(workers.failingSince, 2_000);
  workers.start('a', 0, 2);
  await tick();
  runs[2]!.end('yielded');
  await tick();
  assert.equal(workers.failingSince, undefined, 'a delivery succeeded');
  runs[3]!.end('finished');
});

test('the workers report since when the oldest event waits: in a delivery or for a free slot, unless the webhook fails', async t => {
  t.mock.timers.enable({ apis: ['Date'], now: 5_000 });
  const { workers, runs } = workersOf();
  for (const key of ['a', 'b', 'c']) workers.start(key, 0, 1);
  await tick();
  assert.deepEqual([runs.length, workers.waitingSince], [2, 5_000], 'the third webhook waits for a slot');
  runs[0]!.signals.waits(1_000);
  assert.equal(workers.waitingSince, 1_000);
  runs[0]!.end({ retryMs: 60_000, failingSince: 3_000 });
  await tick();
  assert.deepEqual([runs.length, workers.waitingSince], [3, undefined], 'its event does not count while it fails');
  runs[1]!.signals.waits(2_000);
  assert.equal(workers.waitingSince, 2_000, 'nor does it hide the event of another webhook');
  runs[1]!.end({ retryMs: 60_000 });
  await tick();
  assert.equal(workers.waitingSince, 2_000, 'a retry without a failure');
  runs[2]!.signals.waits(4_000);
  runs[2]!.signals.waits(undefined);
  workers.cancel('b');
  assert.equal(workers.waitingSince, undefined);
  runs[2]!.end('finished');
});

test('when a configuration is deleted and written again, its new worker starts once the old one has ended', async () => {
  const { workers, runs } = workersOf();
  workers.start('a', 0, 1);
  await tick();
  workers.cancel('a');
  workers.start('a', 0, 3);
  await tick();
  assert.deepEqual([runs.length, runs[0]!.signals.cancelled.aborted, workers.size], [1, true, 1]);
  runs[0]!.end('stopped');
  await tick();
  assert.deepEqual([runs.length, runs[1]!.signals.cancelled.aborted], [2, false]);
  runs[1]!.end('finished');
  await tick();
  workers.start('a', 0, 4);
  await tick();
  assert.equal(runs.length, 3, 'an ended worker blocks no other');
});

test('a new revision cancels the worker of the old one, and its own worker starts once that one has ended', async () => {
  const { workers, runs, keys } = workersOf();
  workers.start('a', 0, 1);
  await tick();
  workers.start('a', 0, 1);
  assert.equal(runs[0]!.signals.cancelled.aborted, false);
  workers.start('a', 0, 2);
  assert.equal(runs[0]!.signals.cancelled.aborted, true);
  await tick();
  assert.deepEqual(keys(), ['a']);
  runs[0]!.end('stopped');
  await tick();
  assert.deepEqual(keys(), ['a', 'a']);
  assert.equal(runs[1]!.signals.cancelled.aborted, false);
  assert.equal(workers.size, 1);
});

test('workers of removed configurations are cancelled at once, running or waiting', async () => {
  const { workers, runs, keys } = workersOf({ workersMax: 1 });
  for (const key of ['a', 'b', 'c']) workers.start(key, 0, 1);
  await tick();
  for (const key of ['a', 'b']) workers.cancel(key);
  assert.deepEqual([...workers.keys()], ['c']);
  assert.equal(runs[0]!.signals.cancelled.aborted, true);
  runs[0]!.end('stopped');
  await tick();
  assert.deepEqual(keys(), ['a', 'c']);
});

test('releasing a shard cancels its deliveries after the grace period; other shards continue', {
  timeout: 120_000,
}, async () => {
  const { workers, runs } = workersOf({ workersMax: 3 });
  workers.start('quick', 1, 1);
  workers.start('slow', 1, 1);
  workers.start('other', 2, 1);
  await tick();
  const [quick, slow, other] = runs;
  slow!.signals.cancelled.addEventListener('abort', () => slow!.end('stopped'));
  const released = workers.release(1, 30);
  assert.equal(quick!.signals.draining.aborted, true);
  assert.equal(quick!.signals.cancelled.aborted, false);
  quick!.end('stopped');
  await released;
  assert.equal(slow!.signals.cancelled.aborted, true);
  assert.equal(other!.signals.draining.aborted, false);
  assert.equal(workers.size, 1);
});

test('a worker that waits for a slot does not begin once its shard is being released', async () => {
  const { workers, runs, keys } = workersOf({ workersMax: 1 });
  for (const key of ['a', 'b']) workers.start(key, 1, 1);
  await tick();
  const released = workers.release(1, 5_000);
  runs[0]!.end('stopped');
  await released;
  assert.deepEqual([keys(), workers.size], [['a'], 0]);
});
