import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Progress } from '@modelcontextprotocol/sdk/types.js';
import { PROGRESS_PENDING_MAX } from './limits.ts';
import { withProgress } from './with-progress.ts';

async function drain<T>(running: AsyncGenerator<Progress, T>): Promise<[number[], T]> {
  const seen: number[] = [];
  let step = await running.next();
  while (step.done !== true) {
    seen.push(step.value.progress);
    step = await running.next();
  }
  return [seen, step.value];
}

test('progress comes before the result, in order', async () => {
  const running = withProgress(async onprogress => {
    for (const progress of [1, 2, 3]) {
      onprogress({ progress });
      await Promise.resolve();
    }
    return 'result';
  });
  assert.deepEqual(await drain(running), [[1, 2, 3], 'result']);
});

test('a flood of progress is bounded: the newest stay', async () => {
  const running = withProgress(async onprogress => {
    for (let progress = 1; progress <= PROGRESS_PENDING_MAX + 5; progress += 1) onprogress({ progress });
    return 0;
  });
  const [seen] = await drain(running);
  assert.equal(seen.length, PROGRESS_PENDING_MAX);
  assert.equal(seen.at(-1), PROGRESS_PENDING_MAX + 5);
});

test('a failure comes after the progress before it', async () => {
  const running = withProgress(async onprogress => {
    onprogress({ progress: 1 });
    throw new Error('gone');
  });
  assert.equal((await running.next()).done, false);
  await assert.rejects(running.next(), /gone/);
});
