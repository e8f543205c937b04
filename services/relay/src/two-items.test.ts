import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fold } from '@hopline/a2a';
import { isVisible } from '@hopline/events';
import { createInputWriter, type InputWriter } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { createLogger, type HopMetrics } from '@hopline/telemetry';
import { createRelay, type Relay } from './relay.ts';

const metrics = new Proxy({}, { get: () => ({ add() {}, recordMs() {}, observe() {} }) }) as HopMetrics;
const logger = createLogger({ service: 'relay', instance: 'test', level: 'fatal' });
const coalesce = { eventCostMs: 0, holdMsMax: 100, chunkBytesMax: 32_768 };

const relayOn = (log: MemoryLog): Promise<Relay> =>
  createRelay({ log, instance: 'relay', coalesce, metrics, logger, leaseMs: 120, heartbeatMs: 30 });

async function sendMessage(log: MemoryLog): Promise<void> {
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hello' }] };
  const input = { kind: 'message', message, contextId: 'c', role: 'agent.echo', profile: 'transparent' } as const;
  await log.inputs.append('t', { v: 1, at: Date.now(), from: 'client', input }, { id: 't:msg' });
}

/** The writer of one delivery of a stored work item. */
function writer(log: MemoryLog, item: number, attempt = 1): InputWriter {
  return createInputWriter(log.inputs, { taskId: 't', producer: { id: 'agent', agent: 'echo', turn: 1, item, attempt } });
}

async function foldOf(log: MemoryLog): Promise<Fold> {
  const fold = new Fold();
  for await (const { record } of await log.facts.follow('t', 0, new AbortController().signal)) {
    for (const fact of record.facts.filter(isVisible)) fold.add(fact.event);
    if (fold.ended) break;
  }
  return fold;
}

async function storedText(log: MemoryLog): Promise<string> {
  const fold = new Fold();
  for await (const { record } of log.facts.read('t', 1)) for (const fact of record.facts.filter(isVisible)) fold.add(fact.event);
  return fold.textOf('response');
}

/** Two runs write tokens in turns, each with its own letter. The run named first is always ahead. */
async function writeInTurns(runs: readonly (readonly [string, InputWriter])[], from: number, to: number): Promise<void> {
  for (let index = from; index < to; index++) {
    for (const [letter, out] of runs) {
      out.token('a', `${letter}${index} `);
      await out.flush();
    }
  }
}

test('if a call has two work items, only the text of the first to write is folded, also after a takeover', async () => {
  const log = createMemoryLog();
  let own = log.another();
  const dead = await relayOn(own);
  await sendMessage(log);
  const [first, second] = [writer(log, 7), writer(log, 9)];
  for (const out of [first, second]) {
    out.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
    out.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
    await out.flush();
  }
  await writeInTurns(
    [
      ['A', first],
      ['B', second],
    ],
    0,
    5,
  );
  while (!(await storedText(log)).endsWith('A4 ')) await new Promise(resolve => setTimeout(resolve, 2));
  await own.close();
  void dead.stop().catch(() => {});
  own = log.another();
  const relay = await relayOn(own);
  await writeInTurns(
    [
      ['B', second],
      ['A', first],
    ],
    5,
    10,
  );
  for (const out of [second, first]) {
    out.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
    await out.flush();
  }
  const fold = await foldOf(log);
  assert.equal(fold.textOf('response'), Array.from({ length: 10 }, (_, index) => `A${index} `).join(''));
  assert.deepEqual([fold.task?.status.state, fold.violations], ['TASK_STATE_COMPLETED', []]);
  await relay.stop();
});

test('a later attempt of the writing item replaces its text; the other item stays refused', async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log);
  await sendMessage(log);
  const [first, second, again] = [writer(log, 7), writer(log, 9), writer(log, 7, 2)];
  const texts = [
    [first, ['one']],
    [second, ['two', '!']],
    [again, ['three']],
  ] as const;
  for (const [out, tokens] of texts) {
    out.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
    for (const token of tokens) out.token('a', token);
    await out.flush();
  }
  second.add({ kind: 'status', state: 'TASK_STATE_FAILED' });
  await second.flush();
  again.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  const fold = await foldOf(log);
  assert.deepEqual([fold.textOf('response'), fold.task?.status.state], ['three', 'TASK_STATE_COMPLETED']);
  await relay.stop();
});

test('a relay without checkpoints requests the work of a message again only while its worker has written nothing', async () => {
  const log = createMemoryLog({ shards: 1 });
  const dead = await relayOn(log.another());
  await sendMessage(log);
  const requested: string[] = [];
  const another = (): MemoryLog => {
    const own = log.another();
    own.work.request = async (_role, _work, { id }) => void requested.push(id);
    return own;
  };
  while ((await log.facts.last('t')) === undefined) await new Promise(resolve => setTimeout(resolve, 2));
  await dead.stop();
  await log.leases.delete('shard.0');
  const unworked = await relayOn(another());
  while (requested.length === 0) await new Promise(resolve => setTimeout(resolve, 2));
  const out = writer(log, 7);
  out.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  while ((await log.facts.last('t'))?.record.aggregate.state !== 'TASK_STATE_WORKING')
    await new Promise(resolve => setTimeout(resolve, 2));
  await unworked.stop();
  assert.deepEqual(requested.splice(0), ['t:1']);
  await log.leases.delete('shard.0');
  const relay = await relayOn(another());
  out.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  await foldOf(log);
  assert.deepEqual(requested, []);
  await relay.stop();
});

test("an agent that writes under another agent's id adds no text, and does not use up that agent's ordinals", async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log.another());
  await sendMessage(log);
  const own = writer(log, 7);
  own.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  own.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
  await own.flush();
  while ((await log.facts.last('t'))?.record.aggregate.state !== 'TASK_STATE_WORKING')
    await new Promise(resolve => setTimeout(resolve, 2));
  const from = { id: 'agent', agent: 'files', turn: 1, item: 7, attempt: 1 };
  const tokens = Array.from({ length: 50 }, () => 'forged');
  const forged = { v: 1, at: Date.now(), from, n: 3, inputs: [{ kind: 'text', lane: 'a', tokens }] } as const;
  await log.inputs.append('t', { ...forged, inputs: [...forged.inputs] }, { id: 't:forged' });
  for (const token of ['o', 'w', 'n']) own.token('a', token);
  own.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  const fold = await foldOf(log);
  assert.deepEqual([fold.textOf('response'), fold.task?.status.state], ['own', 'TASK_STATE_COMPLETED']);
  await relay.stop();
});
