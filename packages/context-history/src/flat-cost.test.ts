import assert from 'node:assert/strict';
import { test } from 'node:test';
import { taskOfArtifacts } from '@hopline/task/test-kit';
import { bytesAllocated } from '../../../test/support/counted-work.ts';
import { TaskTurns } from './task-turns.ts';

test('reading the turns of a task does not copy it for each of its artifacts', async () => {
  const { facts } = taskOfArtifacts(5_000);
  const turns = new TaskTurns();
  const bytes = await bytesAllocated(() => {
    for (const fact of facts) turns.apply(fact);
  });
  // Copying the list for each fact would allocate 100 MB.
  assert.ok(bytes < 20_000_000, `${bytes} bytes`);
  assert.equal(turns.contextId, 'c1');
});
