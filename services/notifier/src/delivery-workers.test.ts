import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LaneSignals, Verdict } from './delivery.ts';
import { Lanes, type LanesOptions } from './delivery-workers.ts';

type Run = { key: string; signals: LaneSignals; end: (verdict: Verdict) => void; fail: (error: Error) => void };

const tick = () => new Promise(resolve => setImmediate(resolve));

function lanesOf(options: Partial<LanesOptions> = {}) {
  const runs: Run[] = [];
  const lanes = new Lanes({
    lanesMax: 2,
    now: () => Date.now(),
    failed: () => 0,
    run: (key, signals) => new Promise((end, fail) => runs.push({ key, signals, end, fail })),
    ...options,
  });
  return { lanes, runs, keys: () => runs.map(run => run.key) };
}

test('so many work at a time; a lane that ends makes place for the oldest that waits', async () => {
  const { lanes, runs, keys } = lanesOf();
  for (const key of ['a', 'b', 'c', 'd']) lanes.want(key, 0, 1);
  await tick();
  assert.deepEqual(keys(), ['a', 'b']);
  assert.equal(runs[0]!.signals.crowded(), true);
  runs[1]!.end('over');
  await tick();
  assert.deepEqual(keys(), ['a', 'b', 'c']);
  assert.equal(lanes.size, 3);
});

test('a lane that parks goes to the end of the queue', async () => {
  const { lanes, runs, keys } = lanesOf({ lanesMax: 1 });
  for (const key of ['a', 'b']) lanes.want(key, 0, 1);
  await tick();
  runs[0]!.end('parked');
  await tick();
  runs[1]!.end('parked');
  await tick();
  assert.deepEqual(keys(), ['a', 'b', 'a']);
});

test('a lane that waits to try again holds no place, and comes back in time; so does one that failed', async () => {
  const { lanes, runs, keys } = lanesOf({ lanesMax: 1, failed: () => 20 });
  for (const key of ['a', 'b']) lanes.want(key, 0, 1);
  await tick();
  runs[0]!.end({ retryAt: Date.now() + 20 });
  await tick();
  assert.deepEqual(keys(), ['a', 'b']);
  runs[1]!.fail(new Error('the log is away'));
  while (runs.length < 4) {
    await new Promise(resolve => setTimeout(resolve, 5));
    runs[2]?.end('over');
  }
  assert.deepEqual(keys().slice(2).sort(), ['a', 'b']);
});

test('a configuration that is deleted and written again: the new lane begins when the old one has ended', async () => {
  const { lanes, runs } = lanesOf();
  lanes.want('a', 0, 1);
  await tick();
  lanes.drop('a');
  lanes.want('a', 0, 3);
  await tick();
  assert.deepEqual([runs.length, runs[0]!.signals.cut.aborted, lanes.size], [1, true, 1]);
  runs[0]!.end('stopped');
  await tick();
  assert.deepEqual([runs.length, runs[1]!.signals.cut.aborted], [2, false]);
  runs[1]!.end('over');
  await tick();
  lanes.want('a', 0, 4);
  await tick();
  assert.equal(runs.length, 3, 'what has ended holds up nobody');
});

test('a configuration that is written again cuts its lane, and the new one begins when the old one has ended', async () => {
  const { lanes, runs, keys } = lanesOf();
  lanes.want('a', 0, 1);
  await tick();
  lanes.want('a', 0, 1);
  assert.equal(runs[0]!.signals.cut.aborted, false);
  lanes.want('a', 0, 2);
  assert.equal(runs[0]!.signals.cut.aborted, true);
  await tick();
  assert.deepEqual(keys(), ['a']);
  runs[0]!.end('stopped');
  await tick();
  assert.deepEqual(keys(), ['a', 'a']);
  assert.equal(runs[1]!.signals.cut.aborted, false);
  assert.equal(lanes.size, 1);
});

test('what is gone is cut at once, wherever it was', async () => {
  const { lanes, runs, keys } = lanesOf({ lanesMax: 1 });
  for (const key of ['a', 'b', 'c']) lanes.want(key, 0, 1);
  await tick();
  lanes.drop('b');
  lanes.retain(new Set(['c']));
  assert.equal(runs[0]!.signals.cut.aborted, true);
  runs[0]!.end('stopped');
  await tick();
  assert.deepEqual(keys(), ['a', 'c']);
});

test('a shard that is released: what is on its way has its grace, then it is cut; other shards go on', {
  timeout: 10_000,
}, async () => {
  const { lanes, runs } = lanesOf({ lanesMax: 3 });
  lanes.want('quick', 1, 1);
  lanes.want('slow', 1, 1);
  lanes.want('other', 2, 1);
  await tick();
  const [quick, slow, other] = runs;
  slow!.signals.cut.addEventListener('abort', () => slow!.end('stopped'));
  const released = lanes.release(1, 30);
  assert.equal(quick!.signals.leaving.aborted, true);
  assert.equal(quick!.signals.cut.aborted, false);
  quick!.end('stopped');
  await released;
  assert.equal(slow!.signals.cut.aborted, true);
  assert.equal(other!.signals.leaving.aborted, false);
  assert.equal(lanes.size, 1);
});
