import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textOf } from '@hopline/a2a';
import { createInputWriter, type InputWriter } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { LANES_MAX } from '@hopline/task';
import { createLogger, type HopMetrics } from '@hopline/telemetry';
import { createRelay } from './relay.ts';

const metrics = new Proxy({}, { get: () => ({ add() {}, recordMs() {}, observe() {} }) }) as HopMetrics;
const logger = createLogger({ service: 'relay', instance: 'test', level: 'fatal' });
const coalesce = { eventCostMs: 80, holdMsMax: 100, chunkBytesMax: 32_768 };
/** The first half of a surrogate pair, which the coalescer holds. */
const HALF = '\ud83d';
const STEP_MS = 10;

async function startTask(log: MemoryLog): Promise<InputWriter> {
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hello' }] };
  const input = { kind: 'message', message, contextId: 'c', role: 'agent.echo', profile: 'transparent' } as const;
  await log.inputs.append('t', { v: 1, at: Date.now(), from: 'client', input }, { id: 't:msg:m' });
  const writer = createInputWriter(log.inputs, { taskId: 't', producer: { id: 'agent', agent: 'echo', turn: 1, attempt: 1 } });
  writer.add({ kind: 'open', lane: 'a', artifact: { name: 'a' } });
  await writer.flush();
  return writer;
}

async function reachedState(log: MemoryLog, state: string): Promise<void> {
  for await (const { record } of await log.facts.follow('t', 0, new AbortController().signal))
    if (record.aggregate.state === state) return;
}

/** Whether the shard's checkpoint reaches the newest input within two seconds. */
async function checkpointReachesEnd(log: MemoryLog): Promise<boolean> {
  let newest = 0;
  for await (const { seq } of log.inputs.read('t')) newest = seq;
  for (let waitedMs = 0; waitedMs < 2_000; waitedMs += STEP_MS) {
    if (((await log.leases.get('shard.0'))?.value.checkpoint ?? 0) >= newest) return true;
    await new Promise(resolve => setTimeout(resolve, STEP_MS));
  }
  return false;
}

const relayOn = (log: MemoryLog) =>
  createRelay({ log: log.another(), instance: 'relay', coalesce, metrics, logger, leaseMs: 120, heartbeatMs: 30 });

for (const when of ['before', 'after'] as const) {
  test(`half a surrogate pair ${when} the end of its task neither holds back the checkpoint nor stays in memory`, {
    timeout: 20_000,
  }, async () => {
    const log = createMemoryLog({ shards: 1 });
    const relay = await relayOn(log);
    const writer = await startTask(log);
    if (when === 'before') {
      writer.token('a', HALF);
      for (let n = 0; n <= LANES_MAX; n += 1) writer.add({ kind: 'open', lane: `more ${n}`, artifact: { name: 'b' } });
      await writer.flush();
      await reachedState(log, 'TASK_STATE_FAILED');
    } else {
      await log.inputs.append('t', { v: 1, at: Date.now(), from: 'client', input: { kind: 'cancel' } }, { id: 't:cancel' });
      await reachedState(log, 'TASK_STATE_CANCELED');
      writer.token('a', HALF);
      await writer.flush();
    }
    const reached = await checkpointReachesEnd(log);
    await relay.stop();
    assert.equal(reached, true);
  });
}

test('half a surrogate pair that ends an attempt is stored before the next attempt replaces the text', {
  timeout: 20_000,
}, async () => {
  const log = createMemoryLog({ shards: 1 });
  const relay = await relayOn(log);
  const first = await startTask(log);
  first.token('a', `x${HALF}`);
  await first.flush();
  const second = createInputWriter(log.inputs, { taskId: 't', producer: { id: 'agent', agent: 'echo', turn: 1, attempt: 2 } });
  second.add({ kind: 'open', lane: 'a', artifact: { name: 'a' } });
  second.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  await second.flush();
  await reachedState(log, 'TASK_STATE_COMPLETED');
  await relay.stop();
  const texts: string[] = [];
  for await (const { record } of log.facts.read('t', 1))
    for (const fact of record.facts)
      if (fact.kind === 'artifact.updated' && fact.attempt === 1) texts.push(textOf(fact.event.artifactUpdate.artifact.parts));
  assert.equal(texts.join(''), `x${HALF}`);
});
