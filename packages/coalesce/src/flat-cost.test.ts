import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocksRun } from '../../../test/support/counted-work.ts';
import { createCoalescer, offer, tick, wakeAtMs } from './coalescer.ts';

function coalesce(tokens: number, gapMs: number): void {
  const coalescer = createCoalescer();
  for (let index = 0; index < tokens; index++) {
    const nowMs = index * gapMs;
    const wakeMs = wakeAtMs(coalescer);
    if (wakeMs !== undefined && wakeMs < nowMs) tick(coalescer, wakeMs);
    offer(coalescer, 'lane', { text: ' word', atMs: nowMs }, nowMs);
    if (index % 3 === 2) tick(coalescer, nowMs);
  }
}

// Native string operations are not counted, which is fair because texts are a few units long and joined once.
test('the cost per token is the same in tasks of 1000 and of 100 000 tokens', async () => {
  const src = new URL('.', import.meta.url);
  for (const gapMs of [0, 2]) {
    const short = (await blocksRun(src, () => coalesce(1000, gapMs))) / 1000;
    const long = (await blocksRun(src, () => coalesce(100_000, gapMs))) / 100_000;
    assert.ok(short > 10, 'blocks were counted');
    assert.ok(long <= 1.1 * short, `${long.toFixed(1)} blocks a token against ${short.toFixed(1)}`);
  }
});
