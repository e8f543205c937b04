import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocksRun, bytesAllocated } from '../../../test/support/counted-work.ts';
import { LaneText } from './growing-text.ts';
import { runTurn } from './run-turn.ts';
import { quiet, scripted, TaskLog } from './task-log.test-kit.ts';

async function turnOf(tokens: number): Promise<() => Promise<unknown>> {
  const task = await TaskLog.create('caipe');
  const agent = scripted(async function* () {
    for (let i = 0; i < tokens; i += 1) yield { type: 'text', text: ' token', id: `${i}` };
  });
  return () => runTurn({ log: task.log, agent, name: 'argocd', logger: quiet, signal: new AbortController().signal }, task.job());
}

// Both sizes are several times EVENTS_AT_ONCE_MAX, because before its first turn of the event loop a writer stores only large records.
test('the cost per token is the same in turns of 5000 and of 20 000 tokens', async () => {
  const src = new URL('.', import.meta.url);
  const measures = {
    blocks: { count: (work: () => unknown) => blocksRun(src, work), growthMax: 1.1 },
    // The count is exact to a few MiB; the in-memory log allocates 10 kB per token.
    bytes: { count: bytesAllocated, growthMax: 1.5 },
  };
  for (const [unit, { count, growthMax }] of Object.entries(measures)) {
    const short = (await count(await turnOf(5000))) / 5000;
    const long = (await count(await turnOf(20_000))) / 20_000;
    assert.ok(short > 5, `${unit} were counted`);
    assert.ok(long <= growthMax * short, `${long.toFixed(1)} ${unit} a token against ${short.toFixed(1)}`);
  }
});

test('a token does not copy the text before it', async () => {
  const content = new LaneText();
  const tokens = 100_000;
  const bytes = await bytesAllocated(() => {
    for (let i = 0; i < tokens; i += 1) content.token(' token');
  });
  // A copy of the text per token would take 30 GB in total; a rope takes 5 MB.
  assert.ok(bytes < 50_000_000, `${bytes} bytes`);
  assert.equal(content.snapshot(' token'.repeat(tokens)), undefined);
});
