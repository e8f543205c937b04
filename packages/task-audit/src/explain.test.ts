import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput, TextInput } from '@hopline/events';
import { factsId } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { agent, Scenario } from '@hopline/task/test-kit';
import { EXPLAINED_INPUTS_MAX, explainEvent } from './explain.ts';

const CHUNKS = EXPLAINED_INPUTS_MAX + 2;

/** A task of an agent: a message, its state, a chunk of many records, a notice, the end, and a cancel that comes too late. */
async function storedTask() {
  const log = createMemoryLog({ shards: 1 });
  const scenario = new Scenario('t', () => 1_500);
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
  const input = { kind: 'message', message, contextId: 'c', role: 'agent.argocd', profile: 'transparent' } as const;
  await log.inputs.append('t', { v: 1, at: 1_000, from: 'client', input }, { id: 'message' });
  scenario.when({ kind: 'client', taskId: 't', input });
  let stored = 0;
  let expected = 0;
  const store = async (foldedSeq: number, takeover?: { at: number; cause: 'lost' }) => {
    const aggregate = { ...scenario.aggregate!, foldedSeq };
    const record = { v: 1 as const, facts: scenario.facts.slice(stored), aggregate, startSeq: expected && 1, startStoredAt: 0 };
    stored = scenario.facts.length;
    const options = { expected, id: factsId('t', 'relay-1-aaaaaaaa', expected + 1) };
    expected = (await log.facts.append({ ...record, ...(takeover && { takeover }) }, options)).seq;
  };
  await store(1);
  const from = agent('agent', 2);
  let n = 1;
  const write = async (...inputs: AgentInput[]) => {
    const { seq } = await log.inputs.append('t', { v: 1, at: 1_100, from, n, inputs }, { id: `${n}` });
    n += inputs.length;
    return seq;
  };
  const working = { kind: 'status', state: 'TASK_STATE_WORKING' } as const;
  const open = { kind: 'open', lane: 'a', artifact: { name: 'response' } } as const;
  const firstSeq = await write(working, open, { kind: 'text', lane: 'a', tokens: ['SECRET'] });
  scenario.input(from, working).input(from, open);
  let lastSeq = firstSeq;
  const text: TextInput = { kind: 'text', lane: 'a', tokens: ['SECRET'] };
  for (let index = 1; index < CHUNKS; index++) lastSeq = await write(text);
  const times = { heldMs: 3, waitMs: 2, firstAt: 1_100, lastAt: 1_100 };
  const chunk = { firstSeq, lastSeq, count: CHUNKS, n: CHUNKS + 2, reason: 'age', ...times };
  scenario.when({ kind: 'run', from, lane: 'a', text: 'SECRET', last: false, n: chunk.n, chunk });
  await store(lastSeq, { at: 1_400, cause: 'lost' });
  const done = { kind: 'status', state: 'TASK_STATE_COMPLETED' } as const;
  const end = await write({ kind: 'close', lane: 'a' }, done);
  scenario.input(from, { kind: 'close', lane: 'a' }).input(from, done);
  await store(end);
  await log.inputs.append('t', { v: 1, at: 1_600, from: 'client', input: { kind: 'cancel' } }, { id: 'cancel' });
  return { log, seqs: { firstSeq, lastSeq, end } };
}

test('an event is explained by its inputs, its producer and attempt, its hops, and the relay that folded it', async () => {
  const { log, seqs } = await storedTask();
  const explain = async (generation: number) => (await explainEvent(log, 't', { generation }))!;
  const created = await explain(1);
  assert.deepEqual(
    [created.kind, created.cursor, created.relay, created.producer, created.inputs.map(({ writer, kinds }) => [writer, kinds])],
    ['task', '1.1', 'relay-1-aaaaaaaa', undefined, [['client', ['message']]]],
  );
  const status = await explain(2);
  assert.deepEqual([status.kind, status.name, status.inputs[0]?.seq], ['status', 'working', seqs.firstSeq]);
  const text = await explain(3);
  assert.deepEqual(text.producer, { id: 'agent', agent: 'argocd', turn: 1, attempt: 2 });
  assert.deepEqual([text.inputs.length, text.inputCount], [EXPLAINED_INPUTS_MAX, CHUNKS]);
  assert.deepEqual([text.inputs[0]?.tokens, text.inputs[0]?.atMs, text.inputs[0]?.kinds], [1, 100, ['status', 'open', 'text']]);
  assert.deepEqual(text.takeover, { atMs: 400, cause: 'lost' });
  assert.deepEqual(text.storedWith, [2], 'in one record with the status');
  assert.deepEqual(
    text.path.slice(0, -1).map(({ hop, fromMs, toMs }) => [hop, fromMs, toMs]),
    [
      ['accept', 0, 100],
      ['publish', 100, 495],
      ['hold', 495, 498],
      ['wait_for_append', 498, 500],
    ],
  );
  const { appendMs: _appendMs, ...chunk } = text.chunk!;
  assert.deepEqual(chunk, {
    tokens: CHUNKS,
    reason: 'age',
    firstSeq: seqs.firstSeq,
    lastSeq: seqs.lastSeq,
    firstMs: 100,
    lastMs: 100,
    publishMs: 395,
    heldMs: 3,
    waitMs: 2,
    ageMs: 400,
  });
  for (const generation of [4, 5]) {
    const { inputs } = await explain(generation);
    assert.deepEqual(
      inputs.map(({ seq }) => seq),
      [seqs.end],
      `the end of the artifact and of the task: ${generation}`,
    );
  }
  assert.equal(JSON.stringify([created, status, text]).includes('SECRET'), false, 'an explanation holds no text');
});

test('an event whose inputs were removed is explained without them; an unknown event or task has no explanation', async () => {
  const { log } = await storedTask();
  log.expire('inputs', 't', 1_000);
  assert.deepEqual((await explainEvent(log, 't', { generation: 3 }))?.inputCount, 0);
  assert.equal(await explainEvent(log, 't', { generation: 6 }), undefined);
  assert.equal(await explainEvent(log, 'other', { generation: 1 }), undefined);
});
