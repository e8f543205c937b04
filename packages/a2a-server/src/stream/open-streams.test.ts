import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTelemetry } from '@hopline/telemetry';
import { openServer } from '../server.test-kit.ts';

test('releasing a slot twice frees one slot', t => {
  const { streams } = openServer(t, { limits: { streamsMax: 2, ownerStreamsMax: 2 } }).server;
  const [first] = [streams.acquire({}, 'stream'), streams.acquire({}, 'stream')];
  first!();
  first!();
  streams.acquire({}, 'stream');
  assert.throws(() => streams.acquire({}, 'stream'), /too many open streams/);
  assert.equal(streams.count, 2);
});

test('a refused slot names the reason: all slots are taken, or the server shuts down', t => {
  const { streams, limits } = openServer(t, { limits: { streamsMax: 2, ownerStreamsMax: 2 } }).server;
  const releases = Array.from({ length: limits.streamsMax }, () => streams.acquire({}, 'stream'));
  assert.throws(() => streams.acquire({}, 'stream'), /too many open streams/);
  for (const release of releases) release();
  streams.acquire({}, 'stream')();
  streams.drain();
  assert.throws(() => streams.acquire({}, 'stream'), /shutting down/);
});

test('the gauge has the oldest record that an open stream needs, and no value while none needs one', async t => {
  const telemetry = await startTelemetry({ service: 'ingress', version: '1', instance: 'i', env: {} });
  t.after(() => telemetry.shutdown());
  const { streams } = openServer(t, { metrics: telemetry.metrics }).server;
  const shown = async () =>
    /^hopline_streams_oldest_needed_timestamp_seconds\S* (\S+)$/m.exec(await telemetry.metricsText())?.[1];
  const [whole, old, older] = [undefined, 9_000, 5_500].map(neededSince => {
    const stream = { neededSince, keepAlive() {}, drain() {}, cut() {} };
    streams.add(stream);
    return stream;
  });
  assert.equal(await shown(), '5.5');
  streams.remove(older!);
  assert.equal(await shown(), '9');
  streams.remove(old!);
  assert.equal(await shown(), undefined);
  streams.remove(whole!);
});

test('thousands of streams get their comments in parts, each stream once in the interval', t => {
  t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  const heartbeatMs = 6_400;
  const { streams } = openServer(t, { limits: { heartbeatMs } }).server;
  const kept = Array.from({ length: 10_000 }, () => 0);
  const opened = kept.map((_, n) => {
    const stream = {
      neededSince: undefined,
      keepAlive() {
        kept[n]! += 1;
      },
      drain() {},
      cut() {},
    };
    streams.add(stream);
    return stream;
  });
  const total = () => kept.reduce((sum, times) => sum + times, 0);
  t.mock.timers.tick(heartbeatMs);
  for (let part = 0, before = 0; part < 64; part += 1) {
    const now = total();
    assert.ok(now > before || now === 10_000);
    assert.ok(now - before <= 157, `${now - before} at once`);
    before = now;
    t.mock.timers.tick(50);
  }
  assert.deepEqual(new Set(kept), new Set([1]));
  streams.remove(opened[9_999]!);
  for (let passedMs = 0; passedMs < 2 * heartbeatMs; passedMs += 50) t.mock.timers.tick(50);
  assert.deepEqual(new Set(kept.slice(0, -1)), new Set([3]));
  assert.equal(kept[9_999], 1, 'a stream that has ended');
});
