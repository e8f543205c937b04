import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryLog } from '@hopline/log/memory';
import { createLogger } from '@hopline/telemetry';
import { blocksRun } from '../../../../test/support/counted-work.ts';
import { LIMITS } from '../limits.ts';
import { Quotas } from './quotas.ts';

const CALLERS = 14_000;
/** Blocks of code for the first stream of a caller, in a sweep as well. */
const BLOCKS_MAX = 200;

test('the first stream of a caller costs the same while thousands of others have open streams', async () => {
  const logger = createLogger({ service: 'test', instance: 'test', level: 'silent' });
  const limits = { ...LIMITS, streamsMax: 100_000 };
  const quotas = new Quotas({ log: createMemoryLog(), role: 'supervisor', limits, metrics: undefined, logger });
  const blocks = await blocksRun(new URL('./', import.meta.url), () => {
    for (let n = 0; n < CALLERS; n += 1) quotas.acquire({ subject: `${n}` }, 'stream');
  });
  assert.ok(blocks <= CALLERS * BLOCKS_MAX, `${blocks / CALLERS} blocks for each caller`);
});
