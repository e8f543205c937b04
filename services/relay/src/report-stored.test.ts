import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FLUSH_REASONS } from '@hopline/coalesce';
import type { Fact } from '@hopline/events';
import { Scenario, supervisor } from '@hopline/task/test-kit';
import { NO_METRICS } from '../../../test/kit/no-metrics.ts';
import { logger } from './relay.test-kit.ts';
import { reportStored } from './report-stored.ts';

test('chunks are counted by the reason of the coalescer, and by `other` for a reason of another version', () => {
  const task = new Scenario().message('hello').open(supervisor(), 'a').text(supervisor(), 'a', 'text');
  const aggregate = task.aggregate!;
  const fact = task.facts.findLast(({ kind }) => kind === 'artifact.updated') as Extract<Fact, { kind: 'artifact.updated' }>;
  const counted: string[] = [];
  const chunks = { add: (_count: number, { reason }: { reason: string }) => void counted.push(reason) };
  const metrics: typeof NO_METRICS = Object.assign(Object.create(NO_METRICS), { chunks });
  for (const reason of [...FLUSH_REASONS, 'a later one']) {
    const facts = [{ ...fact, chunk: { ...fact.chunk!, reason } }];
    const step = { facts, aggregate, seq: 1, startSeq: 1, startStoredAt: 0, storedBytes: 0 };
    reportStored(step, { metrics, logger }, { trace: {}, receivedAt: undefined, unfoldedSince: undefined });
  }
  assert.deepEqual(counted, [...FLUSH_REASONS, 'other']);
});
