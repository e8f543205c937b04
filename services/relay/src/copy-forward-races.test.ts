import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RelayInput } from '@hopline/events';
import { readTask, type StoredFacts } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { countingMetrics } from '../../../test/kit/counting-metrics.ts';
import { until } from '../../../test/kit/until.ts';
import {
  COALESCE,
  kill,
  newestOf,
  recordsOf,
  relayOn as relayWith,
  sendMessage,
  storedWhen,
  write,
  writerOf,
} from './relay.test-kit.ts';
import type { Relay } from './relay.ts';

const COPY_FORWARD_AFTER_MS = 300;
/** Longer than one part. */
const LONG = 'x'.repeat(100 * 1024);

type Received = Map<string, number>;

/** `received` counts, by kind, the inputs that reached their task. */
function relayOn(
  log: MemoryLog,
  { copyForwardAfterMs, received }: { copyForwardAfterMs?: number; received?: Received } = {},
): Promise<Relay> {
  const metrics = countingMetrics((_name, count, { kind, outcome }) => {
    if (kind !== undefined && outcome === 'received') received?.set(kind, (received.get(kind) ?? 0) + count);
  });
  return relayWith(log, { coalesce: { ...COALESCE, chunkBytesMax: 262_144 }, metrics, copyForwardAfterMs });
}

async function append(log: MemoryLog, input: RelayInput, id: string): Promise<void> {
  await log.inputs.append('t', { v: 1, at: Date.now(), from: 'relay', input }, { id });
}

const OPEN = { kind: 'open', lane: 'a', artifact: { name: 'a' } } as const;
const INPUT_REQUIRED = { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' } as const;
const COMPLETED = { kind: 'status', state: 'TASK_STATE_COMPLETED' } as const;

const copiedAfter = (log: MemoryLog, afterMs: number) =>
  storedWhen(log, ({ copied, startStoredAt }) => copied?.last === true && startStoredAt > afterMs);

/** Starts a task of several parts that waits for its client, and stops the relay. Resolves with `startStoredAt`. */
async function waitingTask(log: MemoryLog): Promise<number> {
  const relay = await relayOn(log.another());
  await sendMessage(log, 't', { messageId: 'm1' });
  const texts = [LONG, LONG, LONG].map(token => ({ kind: 'text' as const, lane: 'a', tokens: [token] }));
  await write(writerOf(log), OPEN, ...texts, INPUT_REQUIRED);
  await until(async () => (await log.tasks.get('t'))?.value.state === 'TASK_STATE_INPUT_REQUIRED');
  await relay.stop();
  return (await newestOf(log)).record.startStoredAt;
}

test('the next copy-forward becomes due even if the relay of the last one died before it wrote the index [S4-44]', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const startStoredAt = await waitingTask(log);
  const processLog = log.another();
  processLog.tasks.update = () => new Promise(() => {});
  const dead = await relayOn(processLog, { copyForwardAfterMs: COPY_FORWARD_AFTER_MS });
  const { record } = await copiedAfter(log, startStoredAt);
  await kill(processLog, dead);
  const relay = await relayOn(log.another(), { copyForwardAfterMs: COPY_FORWARD_AFTER_MS });
  await copiedAfter(log, record.startStoredAt);
  await relay.stop();
});

test('a relay that dies between two parts of a copy loses nothing, and its successor copies everything [S4-44]', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const startStoredAt = await waitingTask(log);
  const textAt = async (newest: StoredFacts) => {
    let text = '';
    for await (const { record } of readTask(log.facts, newest))
      for (const fact of record.facts)
        if (fact.kind === 'artifact.updated') text += fact.event.artifactUpdate.artifact.parts.map(part => part.text).join('');
    return text;
  };
  const whole = await textAt(await newestOf(log));
  assert.equal(whole.length, 3 * LONG.length);
  for (const diesAt of [2, 3]) {
    const processLog = log.another();
    const appendFacts = processLog.facts.append.bind(processLog.facts);
    const died = Promise.withResolvers<void>();
    processLog.facts.append = async (record, options) => {
      if (record.copied?.part !== diesAt) return appendFacts(record, options);
      died.resolve();
      return new Promise(() => {});
    };
    const dead = await relayOn(processLog, { copyForwardAfterMs: COPY_FORWARD_AFTER_MS });
    await died.promise;
    await kill(processLog, dead);
    const newest = await newestOf(log);
    assert.deepEqual([newest.record.copied?.part, newest.record.copied?.last], [diesAt - 1, false]);
    assert.equal(await textAt(newest), whole);
  }
  const relay = await relayOn(log.another(), { copyForwardAfterMs: COPY_FORWARD_AFTER_MS });
  const { seq, record } = await copiedAfter(log, startStoredAt);
  await relay.stop();
  assert.ok(record.startSeq < seq);
  log.expire('facts', 't', record.startSeq);
  assert.equal(await textAt(await newestOf(log)), whole);
});

test('a record stored before a copy-forward does not mark the copy-forward as folded: the next owner performs it [S4-44]', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const startStoredAt = await waitingTask(log);
  const processLog = log.another();
  const appendFacts = processLog.facts.append.bind(processLog.facts);
  const held = Promise.withResolvers<void>();
  const died = Promise.withResolvers<void>();
  processLog.facts.append = async (record, options) => {
    if (record.copied === undefined) {
      await held.promise;
      return appendFacts(record, options);
    }
    died.resolve();
    return new Promise(() => {});
  };
  const received: Received = new Map();
  const dead = await relayOn(processLog, { received });
  // While the message is being stored, the copy-forward and the agent's text wait together.
  await sendMessage(log, 't', { messageId: 'm2' });
  await append(log, { kind: 'copy-forward', startStoredAt }, `t:copy-forward:${startStoredAt}`);
  await write(writerOf(log, { turn: 2 }), OPEN, { kind: 'text', lane: 'a', tokens: ['more'] });
  await until(() => received.get('text') === 1);
  held.resolve();
  await died.promise;
  await kill(processLog, dead);
  const relay = await relayOn(log.another());
  await copiedAfter(log, startStoredAt);
  await relay.stop();
});

test('promise 1: half of a surrogate pair waits for its other half across inputs that change nothing', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const received: Received = new Map();
  const relay = await relayOn(log.another(), { received });
  await sendMessage(log, 't', { messageId: 'm1' });
  const writer = writerOf(log);
  const [high, low] = ['\ud83d', '\ude00'];
  await write(writer, OPEN, { kind: 'text', lane: 'a', tokens: [high] });
  await until(() => received.get('text') === 1);
  const { startStoredAt } = (await newestOf(log)).record;
  await append(log, { kind: 'copy-forward', startStoredAt }, `t:copy-forward:${startStoredAt}`);
  await append(log, { kind: 'timeout', request: 1 }, 't:timeout:1');
  await sendMessage(log, 't', { messageId: 'm1', id: 't:repeated-after-the-duplicate-window' });
  await until(() => received.get('message') === 2);
  await write(writer, { kind: 'text', lane: 'a', tokens: [low] }, COMPLETED);
  await storedWhen(log, ({ aggregate }) => aggregate.state === 'TASK_STATE_COMPLETED');
  const texts: string[] = [];
  for (const { record } of await recordsOf(log))
    for (const fact of record.facts)
      if (fact.kind === 'artifact.updated') texts.push(fact.event.artifactUpdate.artifact.parts[0]!.text!);
  assert.equal(texts.join(''), '😀');
  assert.ok(texts.every(text => text.isWellFormed()));
  await relay.stop();
});

test('a relay that released its shard copies no further part of its tasks', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  await waitingTask(log);
  const processLog = log.another();
  const appendFacts = processLog.facts.append.bind(processLog.facts);
  const stopped = Promise.withResolvers<void>();
  const parts: number[] = [];
  let relay: Relay | undefined;
  processLog.facts.append = async (record, options) => {
    const stored = await appendFacts(record, options);
    if (record.copied === undefined) return stored;
    parts.push(record.copied.part);
    if (record.copied.part === 1) await relay!.stop().then(stopped.resolve);
    return stored;
  };
  relay = await relayOn(processLog, { copyForwardAfterMs: COPY_FORWARD_AFTER_MS });
  await stopped.promise;
  await new Promise(resolve => setTimeout(resolve, 50));
  assert.deepEqual(parts, [1]);
});
