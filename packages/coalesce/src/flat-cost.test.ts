import assert from 'node:assert/strict';
import { Session } from 'node:inspector/promises';
import { test } from 'node:test';
import { createCoalescer, offer, tick, wakeAtMs } from './coalescer.ts';

/**
 * Counts operations, not time: V8's precise coverage counts how often each block of this package runs, so the result is the same
 * on any machine. Native string operations are not counted; texts are a few units long and joined once.
 */
async function blocksRun(tokens: number, gapMs: number): Promise<number> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    const coalescer = createCoalescer<number>();
    for (let index = 0; index < tokens; index++) {
      const nowMs = index * gapMs;
      const wakeMs = wakeAtMs(coalescer);
      if (wakeMs !== undefined && wakeMs < nowMs) tick(coalescer, wakeMs);
      offer(coalescer, 'lane', { text: ' word', atMs: nowMs, ref: index }, nowMs);
      if (index % 3 === 2) tick(coalescer, nowMs);
    }
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const scripts = result.filter(
      script => script.url.startsWith(new URL('.', import.meta.url).href) && !script.url.endsWith('.test.ts'),
    );
    assert.ok(scripts.length >= 4, 'the package is in the coverage');
    return scripts
      .flatMap(script => script.functions.flatMap(entry => entry.ranges))
      .reduce((sum, range) => sum + range.count, 0);
  } finally {
    session.disconnect();
  }
}

test('the cost per token is the same in tasks of 1000 and of 100 000 tokens', async () => {
  for (const gapMs of [0, 2]) {
    const short = (await blocksRun(1000, gapMs)) / 1000;
    const long = (await blocksRun(100_000, gapMs)) / 100_000;
    assert.ok(short > 10, 'blocks were counted');
    assert.ok(long <= 1.1 * short, `${long.toFixed(1)} blocks a token against ${short.toFixed(1)}`);
  }
});
