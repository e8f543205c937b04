import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { LOOP_SAMPLE_MS, LOOP_WINDOW_MS, watchLoopLag } from './loop-lag.ts';

test('a block is measured while it lasts and after it, and forgotten after two windows', () => {
  mock.timers.enable({ apis: ['setInterval'] });
  let now = 0;
  const pass = (ms: number) => {
    for (let left = ms; left > 0; left -= LOOP_SAMPLE_MS) {
      now += LOOP_SAMPLE_MS;
      mock.timers.tick(LOOP_SAMPLE_MS);
    }
  };
  try {
    const lag = watchLoopLag(() => now);
    pass(1000);
    assert.equal(lag.maxMs(), 0);
    now += 700;
    assert.equal(lag.maxMs(), 700 - LOOP_SAMPLE_MS);
    mock.timers.tick(LOOP_SAMPLE_MS);
    assert.equal(lag.maxMs(), 700 - LOOP_SAMPLE_MS);
    pass(LOOP_WINDOW_MS);
    assert.equal(lag.maxMs(), 700 - LOOP_SAMPLE_MS);
    pass(LOOP_WINDOW_MS);
    assert.equal(lag.maxMs(), 0);
    lag.stop();
  } finally {
    mock.timers.reset();
  }
});

test('a real block of the event loop is measured', async () => {
  const lag = watchLoopLag();
  const until = performance.now() + 400;
  while (performance.now() < until);
  assert.ok(lag.maxMs() >= 250, `${lag.maxMs()} ms`);
  await new Promise(resolve => setTimeout(resolve, LOOP_SAMPLE_MS));
  assert.ok(lag.maxMs() >= 250, `${lag.maxMs()} ms`);
  lag.stop();
});
