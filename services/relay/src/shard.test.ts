import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput, InputRecord } from '@hopline/events';
import { createMemoryLog } from '@hopline/log/memory';
import { ENDED_IDLE_MS, IDLE_MS, Shard, SWEEP_MS } from './shard.ts';

const MESSAGE: InputRecord = {
  v: 1,
  at: 1,
  from: 'client',
  input: {
    kind: 'message',
    message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }] },
    contextId: 'c',
    role: 'agent.echo',
    profile: 'transparent',
  },
};

function agent(n: number, state: 'TASK_STATE_WORKING' | 'TASK_STATE_COMPLETED'): InputRecord {
  const inputs: AgentInput[] = [{ kind: 'status', state }];
  return { v: 1, at: 1, from: { id: 'agent', agent: 'echo', turn: 1, item: 1, attempt: 1 }, n, inputs };
}

test('an ended task leaves memory after ENDED_IDLE_MS, an open one after IDLE_MS; what follows an end is rejected all the same', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const log = createMemoryLog({ shards: 1 });
  let [nowMs, ids] = [0, 0];
  const reasons: string[] = [];
  const shard = new Shard(0, 0, {
    inputs: log.inputs,
    facts: log.facts,
    shards: 1,
    taskBytesMax: Number.POSITIVE_INFINITY,
    owned: { at: 0, cause: 'fresh' },
    coalesce: { eventCostMs: 0, holdMsMax: 100, chunkBytesMax: 32_768 },
    now: () => nowMs,
    wallNow: Date.now,
    appendId: taskId => `${taskId}:${++ids}`,
    hadFacts: async () => false,
    applySideEffects: () => undefined,
    onRejected: reason => void reasons.push(reason),
    onRejectedRecord: ({ fault }) => assert.fail(fault),
    onOutcome: () => {},
    onAppend: () => {},
    onStored: () => {},
    onFailure: error => assert.ifError(error),
  });
  shard.start();
  const append = (taskId: string, record: InputRecord) => log.inputs.append(taskId, record, { id: `i${++ids}` });
  const folded = async (taskId: string, foldedSeq: number) => {
    while (((await log.facts.last(taskId))?.record.aggregate.foldedSeq ?? 0) < foldedSeq) await new Promise(setImmediate);
  };
  const sweepAt = (ms: number) => {
    nowMs = ms;
    t.mock.timers.tick(SWEEP_MS);
    return shard.taskCount;
  };
  try {
    await append('ends', MESSAGE);
    await append('ends', agent(1, 'TASK_STATE_WORKING'));
    const end = await append('ends', agent(2, 'TASK_STATE_COMPLETED'));
    await append('works', MESSAGE);
    const { seq } = await append('works', agent(1, 'TASK_STATE_WORKING'));
    await Promise.all([folded('ends', end.seq), folded('works', seq)]);
    while (shard.checkpoint < seq) await new Promise(setImmediate);
    assert.equal(sweepAt(ENDED_IDLE_MS - 1), 2);
    assert.equal(sweepAt(ENDED_IDLE_MS), 1);
    const late = await append('ends', agent(3, 'TASK_STATE_WORKING'));
    while (shard.checkpoint < late.seq) await new Promise(setImmediate);
    assert.deepEqual(reasons, ['terminal']);
    assert.equal(sweepAt(IDLE_MS - 1), 1, 'the ended task, read again, is gone; the open one is here');
    assert.equal(sweepAt(IDLE_MS), 0);
  } finally {
    await shard.stop();
  }
});
