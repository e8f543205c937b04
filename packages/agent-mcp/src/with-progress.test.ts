import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Progress } from '@modelcontextprotocol/client';
import { PROGRESS_PENDING_MAX } from './limits.ts';
import { withProgress } from './with-progress.ts';

async function drain<T>(running: AsyncGenerator<Progress, T>): Promise<[number[], T]> {
  const progresses: number[] = [];
  let step = await running.next();
  while (step.done !== true) {
    progresses.push(step.value.progress);
    step = await running.next();
  }
  return [progresses, step.value];
}

test('progress precedes the result, in order', async () => {
  const running = withProgress(async onprogress => {
    for (const progress of [1, 2, 3]) {
      onprogress({ progress });
      await Promise.resolve();
    }
    return 'result';
  });
  assert.deepEqual(await drain(running), [[1, 2, 3], 'result']);
});

test('pending progress is bounded and keeps the newest', async () => {
  const running = withProgress(async onprogress => {
    for (let progress = 1; progress <= PROGRESS_PENDING_MAX + 5; progress += 1) onprogress({ progress });
    return 0;
  });
  const [progresses] = await drain(running);
  assert.equal(progresses.length, PROGRESS_PENDING_MAX);
  assert.equal(progresses.at(-1), PROGRESS_PENDING_MAX + 5);
});

test('progress precedes a failure', async () => {
  const running = withProgress(async onprogress => {
    onprogress({ progress: 1 });
    throw new Error('gone');
  });
  assert.equal((await running.next()).done, false);
  await assert.rejects(running.next(), /gone/);
});
