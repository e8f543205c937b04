import assert from 'node:assert/strict';
import { mock, type TestContext, test } from 'node:test';
import { LOOP_SAMPLE_MS, LOOP_WINDOW_MS, watchLoopLag } from './loop-lag.ts';

/** A process whose time and CPU time move only in the test. */
function fakeProcess(t: TestContext) {
  mock.timers.enable({ apis: ['setInterval'] });
  t.after(() => mock.timers.reset());
  let now = 0;
  let cpu = 0;
  const lag = watchLoopLag(
    () => now,
    () => cpu,
  );
  t.after(() => lag.stop());
  return {
    lag,
    /** The loop runs, and uses no CPU. */
    pass(ms: number) {
      for (let left = ms; left > 0; left -= LOOP_SAMPLE_MS) {
        now += LOOP_SAMPLE_MS;
        mock.timers.tick(LOOP_SAMPLE_MS);
      }
    },
    /** The loop is blocked for `ms`, in which the process uses `cpuMs`. */
    late(ms: number, cpuMs: number) {
      now += ms;
      cpu += cpuMs;
    },
  };
}

test('a block is measured while it lasts and after it, and forgotten after two windows', t => {
  const { lag, pass, late } = fakeProcess(t);
  pass(1000);
  assert.equal(lag.maxMs(), 0);
  late(700, 700);
  assert.equal(lag.maxMs(), 700 - LOOP_SAMPLE_MS);
  mock.timers.tick(LOOP_SAMPLE_MS);
  assert.equal(lag.maxMs(), 700 - LOOP_SAMPLE_MS);
  pass(LOOP_WINDOW_MS);
  assert.equal(lag.maxMs(), 700 - LOOP_SAMPLE_MS);
  pass(LOOP_WINDOW_MS);
  assert.equal(lag.maxMs(), 0);
});

test('a process without CPU does not count as blocked; with little CPU it counts as blocked only for the CPU time that it used', t => {
  const { lag, pass, late } = fakeProcess(t);
  late(60_000, 30);
  assert.equal(lag.maxMs(), 30);
  pass(LOOP_SAMPLE_MS);
  assert.equal(lag.maxMs(), 30);
  // An endless loop in a process that gets a tenth of a core.
  for (let second = 1; second <= 60; second += 1) late(1_000, 100);
  assert.equal(lag.maxMs(), 6_000);
});

test('a real block of the event loop is measured', async () => {
  const lag = watchLoopLag();
  const used = process.cpuUsage();
  while (process.cpuUsage(used).user < 400_000);
  assert.ok(lag.maxMs() >= 250, `${lag.maxMs()} ms`);
  await new Promise(resolve => setTimeout(resolve, LOOP_SAMPLE_MS));
  assert.ok(lag.maxMs() >= 250, `${lag.maxMs()} ms`);
  lag.stop();
});
