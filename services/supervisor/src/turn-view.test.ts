import assert from 'node:assert/strict';
import { test } from 'node:test';
import { taskOfArtifacts } from '@hopline/task/test-kit';
import { bytesAllocated } from '../../../test/support/counted-work.ts';
import { TurnView } from './turn-view.ts';

test('a supervisor that follows a task does not copy it for each of its artifacts', async () => {
  const { facts, aggregate } = taskOfArtifacts(5_000);
  const view = new TurnView();
  const bytes = await bytesAllocated(() => {
    for (const [index, fact] of facts.entries())
      view.apply({ seq: index + 1, record: { v: 1, facts: [fact], aggregate, startSeq: 1, startStoredAt: 1 } });
  });
  // Copying the list for each fact would allocate 100 MB.
  assert.ok(bytes < 20_000_000, `${bytes} bytes`);
  assert.deepEqual(
    view.artifactsOf('supervisor').map(({ artifactId }) => artifactId),
    Array.from({ length: 5_000 }, (_, index) => `${index}`),
  );
});
