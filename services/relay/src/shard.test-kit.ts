import assert from 'node:assert/strict';
import type { MemoryLog } from '@hopline/log/memory';
import type { ShardContext } from './shard.ts';

/** What the only shard of a log in memory needs. It has no side effects, and no fault is expected. */
export function shardContext({ inputs, facts }: MemoryLog, more: Partial<ShardContext> = {}): ShardContext {
  let appends = 0;
  return {
    inputs,
    facts,
    shards: 1,
    taskBytesMax: Number.POSITIVE_INFINITY,
    owned: { at: 0, cause: 'fresh' },
    coalesce: { eventCostMs: 0, holdMsMax: 100, chunkBytesMax: 32_768 },
    now: () => performance.now(),
    wallNow: Date.now,
    appendId: taskId => `${taskId}:append-${++appends}`,
    indexedSeq: async () => undefined,
    onRefold: () => {},
    applySideEffects: () => undefined,
    onRejected: () => {},
    onRejectedRecord: ({ fault }) => assert.fail(fault),
    onOutcome: () => {},
    onAppend: () => {},
    onStored: () => {},
    onFailure: error => assert.ifError(error),
    ...more,
  };
}
