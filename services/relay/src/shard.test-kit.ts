import assert from 'node:assert/strict';
import { Layouts } from '@hopline/events';
import { Semaphore } from '@hopline/log';
import type { MemoryLog } from '@hopline/log/memory';
import { createHopMetrics, type HopMetrics } from '@hopline/telemetry';
import { CreationBudget } from './creation-budget.ts';
import { logger } from './relay.test-kit.ts';
import type { ShardContext } from './shard.ts';
import { UnknownTasks } from './unknown-tasks.ts';
import { WaitingInputs } from './waiting-inputs.ts';

/** Context of a shard of an in-memory log that has only this one. Side effects do nothing, and any fault fails the test. */
export function shardContext({ inputs, facts }: MemoryLog, more: Partial<ShardContext> = {}): ShardContext {
  let appends = 0;
  return {
    inputs,
    facts,
    waiting: new WaitingInputs(() => performance.now()),
    leadershipOf: async shard => (await facts.extent()).ofShard(shard).leadership,
    begins: new Semaphore(Number.POSITIVE_INFINITY),
    unknownTasks: new UnknownTasks(),
    creations: new CreationBudget(),
    agentLoads: new Semaphore(1),
    mayBeOpen: () => true,
    layouts: () => Layouts.one(1),
    taskBytesMax: Number.POSITIVE_INFINITY,
    owned: { at: 0, cause: 'fresh' },
    coalesce: { eventCostMs: 0, holdMsMax: 100, chunkBytesMax: 32_768 },
    now: () => performance.now(),
    wallNow: Date.now,
    appendId: taskId => `${taskId}:append-${++appends}`,
    indexedSeq: async () => undefined,
    onRefold: () => {},
    onLostNewest: () => {},
    countStored: () => {},
    applySideEffects: () => undefined,
    metrics: createHopMetrics('relay'),
    logger,
    onRejectedRecord: ({ fault }) => assert.fail(fault),
    onFailure: error => assert.ifError(error),
    ...more,
  };
}

/** Relay instruments that pass the reason of each rejection to `onRejected`. */
export function metricsOf(onRejected: (reason: string) => void): HopMetrics {
  const inputsRejected: HopMetrics['inputsRejected'] = { add: (_count, { reason = '' } = {}) => onRejected(reason) };
  return { ...createHopMetrics('relay'), inputsRejected };
}
