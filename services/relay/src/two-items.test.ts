import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fold } from '@hopline/a2a';
import type { InputWriter } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { until } from '../../../test/kit/until.ts';
import { kill, relayOn, sendMessage, shownWhen, storedWhen, writerOf } from './relay.test-kit.ts';

const isEnded = ({ ended }: Fold) => ended;

/** Makes runs write tokens in turn, each with its own letter. The first run is always ahead. */
async function writeInTurns(runs: readonly (readonly [string, InputWriter])[], from: number, to: number): Promise<void> {
  for (let index = from; index < to; index++) {
    for (const [letter, out] of runs) {
      out.token('a', `${letter}${index} `);
      await out.flush();
    }
  }
}

test('if a call has two work items, only the text of the first to write is folded, even after a takeover', async () => {
  const log = createMemoryLog();
  let processLog = log.another();
  const dead = await relayOn(processLog);
  await sendMessage(log);
  const [first, second] = [writerOf(log, { item: 7 }), writerOf(log, { item: 9 })];
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
  await shownWhen(log, fold => fold.textOf('response').endsWith('A4 '));
  await kill(processLog, dead);
  processLog = log.another();
  const relay = await relayOn(processLog);
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
  const fold = await shownWhen(log, isEnded);
  assert.equal(fold.textOf('response'), Array.from({ length: 10 }, (_, index) => `A${index} `).join(''));
  assert.deepEqual([fold.task?.status.state, fold.violations], ['TASK_STATE_COMPLETED', []]);
  await relay.stop();
});

test('a later attempt of the writing item replaces its text; the other item stays refused', async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log);
  await sendMessage(log);
  const [first, second] = [writerOf(log, { item: 7 }), writerOf(log, { item: 9 })];
  const again = writerOf(log, { item: 7, attempt: 2 });
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
  const fold = await shownWhen(log, isEnded);
  assert.deepEqual([fold.textOf('response'), fold.task?.status.state], ['three', 'TASK_STATE_COMPLETED']);
  await relay.stop();
});

test('a relay without checkpoints requests the work of a message again only while its worker has written nothing', async () => {
  const log = createMemoryLog({ shards: 1 });
  const dead = await relayOn(log.another());
  await sendMessage(log);
  const requested: string[] = [];
  const another = (): MemoryLog => {
    const processLog = log.another();
    processLog.work.request = async (_role, _work, { id }) => {
      requested.push(id);
      return { duplicate: false };
    };
    return processLog;
  };
  await storedWhen(log, () => true);
  await dead.stop();
  await log.leases.delete('shard.0');
  const unworked = await relayOn(another());
  await until(() => requested.length > 0);
  const out = writerOf(log, { item: 7 });
  out.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  await storedWhen(log, ({ aggregate }) => aggregate.state === 'TASK_STATE_WORKING');
  await unworked.stop();
  assert.deepEqual(requested.splice(0), ['t:1']);
  await log.leases.delete('shard.0');
  const relay = await relayOn(another());
  out.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  await shownWhen(log, isEnded);
  assert.deepEqual(requested, []);
  await relay.stop();
});

test("an agent that writes under another agent's id adds no text, and does not use up that agent's ordinals", async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log.another());
  await sendMessage(log);
  const itemWriter = writerOf(log, { item: 7 });
  itemWriter.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  itemWriter.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
  await itemWriter.flush();
  await storedWhen(log, ({ aggregate }) => aggregate.state === 'TASK_STATE_WORKING');
  const from = { id: 'agent', agent: 'files', turn: 1, item: 7, attempt: 1 };
  const tokens = Array.from({ length: 50 }, () => 'forged');
  const forged = { v: 1, at: Date.now(), from, n: 3, inputs: [{ kind: 'text', lane: 'a', tokens }] } as const;
  await log.inputs.append('t', { ...forged, inputs: [...forged.inputs] }, { id: 't:forged' });
  for (const token of ['o', 'w', 'n']) itemWriter.token('a', token);
  itemWriter.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  const fold = await shownWhen(log, isEnded);
  assert.deepEqual([fold.textOf('response'), fold.task?.status.state], ['own', 'TASK_STATE_COMPLETED']);
  await relay.stop();
});
