import assert from 'node:assert/strict';
import { test } from 'node:test';
import { taskOfArtifacts } from '@hopline/task/test-kit';
import { bytesAllocated } from '../../../../test/support/counted-work.ts';
import { ByteBudget } from './byte-budget.ts';
import { HeldView } from './held-view.ts';

test('a task that is followed live is not copied for each of its artifacts', async () => {
  const { facts, aggregate } = taskOfArtifacts(5_000);
  const held = new HeldView(new ByteBudget(1_000_000_000), 1_000_000_000);
  const bytes = await bytesAllocated(() => {
    for (const fact of facts) held.add({ v: 1, facts: [fact], aggregate, startSeq: 1, startStoredAt: 1 }, () => 1);
  });
  // Copying the list for each fact would allocate 100 MB.
  assert.ok(bytes < 20_000_000, `${bytes} bytes`);
  assert.equal(held.view?.task.artifacts?.length, 5_000);
});
