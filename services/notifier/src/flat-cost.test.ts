import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryLog } from '@hopline/log/memory';
import { taskOfArtifacts } from '@hopline/task/test-kit';
import { bytesAllocated } from '../../../test/support/counted-work.ts';
import { Backlog, BacklogBudget } from './backlog.ts';

test('a webhook that gets whole tasks does not copy its task for each waiting artifact', async () => {
  const log = createMemoryLog();
  const { facts, aggregate } = taskOfArtifacts(5_000);
  let seq = 0;
  for (let at = 0; at < facts.length; at += 1_000) {
    const record = { v: 1 as const, facts: facts.slice(at, at + 1_000), aggregate, startSeq: Math.min(1, seq), startStoredAt: 1 };
    ({ seq } = await log.facts.append(record, { expected: seq, id: `${at}` }));
  }
  const stop = new AbortController();
  const start = { taskId: 't1', dialect: '0.3', generation: 1, seq: 0 } as const;
  const backlog = new Backlog(log.facts, start, stop.signal, new BacklogBudget());
  const bytes = await bytesAllocated(() => backlog.ready(aggregate.generation, 60_000));
  // Copying the list for each fact would allocate 100 MB.
  assert.ok(bytes < 30_000_000, `${bytes} bytes`);
  const delivery = backlog.take()!;
  assert.deepEqual([delivery.count, delivery.generation, delivery.task?.artifacts?.length], [5_000, 5_001, 5_000]);
  stop.abort();
});
