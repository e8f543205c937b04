import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isTerminal } from '@hopline/a2a';
import type { AgentInput, Fact } from '@hopline/events';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { WORKER_GONE } from '@hopline/task';
import { until } from '../../../test/kit/until.ts';
import {
  COALESCE,
  factsOf,
  kill,
  newestOf,
  relayOn as relayWith,
  sendMessage,
  storedWhen,
  write,
  writerOf,
} from './relay.test-kit.ts';

const COPY_FORWARD_AFTER_MS = 300;
/** Longer than one part. */
const LONG = 'x'.repeat(100 * 1024);

const coalesce = { ...COALESCE, chunkBytesMax: 262_144 };
const relayOn = (log: MemoryLog, copyForwardAfterMs?: number) => relayWith(log, { coalesce, copyForwardAfterMs });

async function appendAgent(log: MemoryLog, turn: number, ...inputs: AgentInput[]): Promise<void> {
  await write(writerOf(log, { turn }), ...inputs);
}

const INPUT_REQUIRED = { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' } as const;
const COMPLETED = { kind: 'status', state: 'TASK_STATE_COMPLETED' } as const;
const textInputs = (lane: string, ...tokens: string[]): AgentInput[] => [
  { kind: 'open', lane, artifact: { name: lane } },
  { kind: 'text', lane, tokens },
];

const copiedAfter = (log: MemoryLog, afterMs: number) =>
  storedWhen(log, ({ copied, startStoredAt }) => copied?.last === true && startStoredAt > afterMs);

/** Starts a task of several parts that waits for its client, and stops the relay. */
async function waitingTask(log: MemoryLog): Promise<Fact[]> {
  const relay = await relayOn(log.another());
  await sendMessage(log, 't', { messageId: 'm1' });
  await appendAgent(log, 1, ...textInputs('a', LONG, LONG, LONG), INPUT_REQUIRED);
  await storedWhen(log, ({ aggregate }) => aggregate.state === 'TASK_STATE_INPUT_REQUIRED');
  await until(async () => (await log.tasks.get('t'))?.value.state === 'TASK_STATE_INPUT_REQUIRED');
  await relay.stop();
  return factsOf(log);
}

test('a short task, whose copy is one record, is copied forward repeatedly and loses no fact [S4-44]', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log.another(), COPY_FORWARD_AFTER_MS);
  await sendMessage(log, 't', { messageId: 'm1' });
  await appendAgent(log, 1, ...textInputs('a', 'short'), INPUT_REQUIRED);
  await storedWhen(log, ({ aggregate }) => aggregate.state === 'TASK_STATE_INPUT_REQUIRED');
  const facts = await factsOf(log);
  const first = await copiedAfter(log, 0);
  await copiedAfter(log, first.record.startStoredAt);
  assert.deepEqual(await factsOf(log), facts);
  await relay.stop();
});

test('an open task is copied forward repeatedly while retention removes its first records, and loses no fact [S4-44]', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const facts = await waitingTask(log);
  const relay = await relayOn(log.another(), COPY_FORWARD_AFTER_MS);
  const first = await copiedAfter(log, 0);
  assert.ok(first.record.copied!.part > 1, 'several parts');
  log.expire('facts', 't', first.record.startSeq);
  assert.deepEqual(await factsOf(log), facts);
  const second = await copiedAfter(log, first.record.startStoredAt);
  assert.ok(second.record.startStoredAt - first.record.startStoredAt >= COPY_FORWARD_AFTER_MS);
  assert.ok(second.record.startSeq > first.seq);
  log.expire('facts', 't', second.record.startSeq);
  assert.deepEqual(await factsOf(log), facts);

  await sendMessage(log, 't', { messageId: 'm2' });
  await appendAgent(log, 2, ...textInputs('b', 'done'), COMPLETED);
  const end = await storedWhen(log, ({ aggregate }) => aggregate.state === 'TASK_STATE_COMPLETED');
  const all = await factsOf(log);
  assert.deepEqual(all.slice(0, facts.length), facts);
  assert.deepEqual(all.at(-1), end.record.facts.at(-1));
  const generations = all.flatMap(fact => ('generation' in fact ? [fact.generation] : []));
  assert.deepEqual(
    generations,
    generations.map((_generation, index) => index + 1),
  );
  await until(async () => (await log.tasks.get('t'))?.value.state === 'TASK_STATE_COMPLETED');
  await relay.stop();
});

test('a finished task is not copied forward, and without the setting no task is', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  await waitingTask(log);
  const before = await newestOf(log);
  const idle = await relayOn(log.another());
  await new Promise(resolve => setTimeout(resolve, COPY_FORWARD_AFTER_MS * 2));
  assert.equal((await newestOf(log)).seq, before.seq);
  await sendMessage(log, 't', { messageId: 'm2' });
  await appendAgent(log, 2, COMPLETED);
  const end = await storedWhen(log, ({ aggregate }) => aggregate.state === 'TASK_STATE_COMPLETED');
  await idle.stop();
  const relay = await relayOn(log.another(), COPY_FORWARD_AFTER_MS);
  await new Promise(resolve => setTimeout(resolve, COPY_FORWARD_AFTER_MS * 2));
  assert.equal((await newestOf(log)).seq, end.seq);
  await relay.stop();
});

test('a relay that dies between two parts leaves the task unchanged; the next one copies it forward', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const facts = await waitingTask(log);
  const processLog = log.another();
  const append = processLog.facts.append.bind(processLog.facts);
  const died = Promise.withResolvers<void>();
  processLog.facts.append = async (record, options) => {
    if (record.copied?.part !== 2) return append(record, options);
    died.resolve();
    return new Promise(() => {});
  };
  const dead = await relayOn(processLog, COPY_FORWARD_AFTER_MS);
  await died.promise;
  await kill(processLog, dead);
  assert.equal((await newestOf(log)).record.copied?.part, 1);
  assert.deepEqual(await factsOf(log), facts);
  const relay = await relayOn(log.another(), COPY_FORWARD_AFTER_MS);
  const { record } = await copiedAfter(log, 0);
  log.expire('facts', 't', record.startSeq);
  assert.deepEqual(await factsOf(log), facts);
  await relay.stop();
});

test('a fact that does not fit into a record together with the grown aggregate is not copied forward, and blocks nothing else', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const facts = await waitingTask(log);
  const processLog = log.another();
  const append = processLog.facts.append.bind(processLog.facts);
  const { RecordTooLarge } = await import('@hopline/log');
  processLog.facts.append = async (record, options) => {
    if (record.copied !== undefined) throw new RecordTooLarge('too large');
    return append(record, options);
  };
  const relay = await relayOn(processLog, COPY_FORWARD_AFTER_MS);
  const startStoredAt = async () => (await log.tasks.get('t'))?.value.startStoredAt ?? 0;
  const before = await startStoredAt();
  await until(async () => (await startStoredAt()) !== before);
  await sendMessage(log, 't', { messageId: 'm2' });
  await storedWhen(log, ({ aggregate }) => aggregate.turn === 2);
  assert.deepEqual((await factsOf(log)).slice(0, facts.length), facts);
  await relay.stop();
});

test('a task fails if nothing was stored between two copies, because no worker continues it [S4-44]', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log.another(), COPY_FORWARD_AFTER_MS);
  await sendMessage(log, 't', { messageId: 'm1' });
  const copied = await storedWhen(log, ({ copied }) => copied?.last === true);
  const end = await storedWhen(log, ({ aggregate }) => isTerminal(aggregate.state));
  const status = end.record.facts.findLast(fact => fact.kind === 'status.changed')!.event.statusUpdate;
  assert.deepEqual([status.status.state, status.metadata], ['TASK_STATE_FAILED', { reason: WORKER_GONE, retryable: true }]);
  assert.ok(end.record.aggregate.at - copied.record.startStoredAt >= COPY_FORWARD_AFTER_MS);
  await relay.stop();
});
