import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fold } from '@hopline/a2a';
import { type AgentInput, type FactRecord, isVisible, type Producer } from '@hopline/events';
import { LogFull, LogUnavailable, taskOfFactsId } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { evolve } from '@hopline/task';
import { createLogger } from '@hopline/telemetry';
import fc from 'fast-check';
import { countingMetrics } from '../../../test/kit/counting-metrics.ts';
import { until } from '../../../test/kit/until.ts';
import {
  COALESCE,
  foldOf,
  kill,
  logger,
  relayOn as relayWith,
  sendMessage,
  shownWhen,
  storedWhen,
  writerOf,
} from './relay.test-kit.ts';
import { createRelay } from './relay.ts';

const coalesce = { ...COALESCE, eventCostMs: 80 };

const relayOn = (log: MemoryLog, settings = coalesce) => relayWith(log, { coalesce: settings });

/** The fact records of a task up to its end. */
async function records(log: MemoryLog, taskId: string): Promise<FactRecord[]> {
  const stop = new AbortController();
  const all: FactRecord[] = [];
  for await (const { record } of await log.facts.follow(taskId, 'new', stop.signal)) {
    all.push(record);
    if (record.aggregate.state === 'TASK_STATE_COMPLETED') stop.abort();
  }
  return all;
}

function assertSound(all: FactRecord[]): Fold {
  const fold = foldOf(all);
  assert.deepEqual(fold.violations, []);
  const visible = all.flatMap(({ facts }) => facts.filter(isVisible));
  for (const [index, { generation, lostAfter }] of visible.entries()) {
    const before = visible[index - 1]?.generation ?? 0;
    assert.ok(generation === before + 1 || (lostAfter === before && generation > before), `${generation} after ${before}`);
  }
  const [first, ...rest] = all.flatMap(({ facts }) => facts);
  const folded = rest.reduce(evolve, evolve(undefined, first!));
  const marks = { foldedSeq: 0, lastNSeq: 0, producers: {}, storedBytes: 0 };
  assert.deepEqual({ ...folded, ...marks }, { ...all.at(-1)!.aggregate, ...marks });
  return fold;
}

test('the aggregate of a record equals the fold of all facts, so a new owner needs no other record', async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log);
  const seen = records(log, 't1');
  await sendMessage(log, 't1');
  const out = writerOf(log, { taskId: 't1' });
  out.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
  for (const token of ['H', 'ere', ' is', ' ', '\n', 'ha', 'ha']) out.token('a', token);
  out.add({ kind: 'close', lane: 'a' });
  out.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  const fold = assertSound(await seen);
  assert.equal(fold.textOf('response'), 'Here is \nhaha');
  assert.ok([...fold.artifacts.values()].every(artifact => artifact.closed));
  await relay.stop();
});

test('a message with a new task id creates the task without reading the log; after a takeover the task is read', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const [last, read] = [log.facts.last.bind(log.facts), new Set<string>()];
  log.facts.last = taskId => {
    read.add(taskId);
    return last(taskId);
  };
  const messagesOf = async (taskId: string) => (await last(taskId))?.record.aggregate.messageIds ?? [];
  const first = await relayOn(log);
  await sendMessage(log, 'live', { messageId: 'm1', creates: true });
  await sendMessage(log, 'unmarked', { messageId: 'm1' });
  await until(async () => (await messagesOf('live')).length === 1 && (await messagesOf('unmarked')).length === 1);
  assert.deepEqual([...read], ['unmarked']);
  await first.stop();

  await sendMessage(log, 'waiting', { messageId: 'm1', creates: true });
  const second = await relayOn(log);
  await until(async () => (await messagesOf('waiting')).length === 1);
  assert.ok(read.has('waiting'));
  // If the input wrongly claims to create the task, the append conflicts, the shard restarts, and the task is then read.
  await sendMessage(log, 'live', { messageId: 'm2', creates: true });
  await until(async () => (await messagesOf('live')).length === 2);
  assert.deepEqual(await messagesOf('live'), ['m1', 'm2']);
  await second.stop();
});

test('inputs removed before they were read fail the task: text with a gap never looks complete', async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log);
  await sendMessage(log, 't1');
  const producer: Producer = { id: 'agent', agent: 'echo', turn: 1, attempt: 1 };
  const append = (n: number, inputs: AgentInput[]) =>
    log.inputs.append('t1', { v: 1, at: Date.now(), from: producer, n, inputs }, { id: `t1:${n}` });
  await append(1, [{ kind: 'open', lane: 'a', artifact: { name: 'response' } }]);
  await append(2, [{ kind: 'text', lane: 'a', tokens: ['one '] }]);
  await append(4, [{ kind: 'text', lane: 'a', tokens: ['three'] }]);
  const fold = await shownWhen(log, ({ ended }) => ended, 't1');
  assert.equal(fold.task?.status.state, 'TASK_STATE_FAILED');
  assert.equal(fold.textOf('response'), 'one ');
  await relay.stop();
});

test('the first text of a lane is stored at once, in the record that opens the lane; later text waits for its pace [S0-38]', async () => {
  const log = createMemoryLog();
  // A lane whose pace is unknown would be held for half a minute.
  const relay = await relayOn(log, { ...coalesce, eventCostMs: 60_000, holdMsMax: 30_000 });
  const seen = records(log, 't1');
  await sendMessage(log, 't1');
  const out = writerOf(log, { taskId: 't1' });
  for (const lane of ['a', 'b']) {
    out.add({ kind: 'open', lane, artifact: { name: lane } });
    out.token(lane, `first of ${lane}`);
    await out.flush();
  }
  let stored = 0;
  for await (const { record } of await log.facts.follow('t1', 0, new AbortController().signal)) {
    stored += record.facts.filter(fact => fact.kind === 'artifact.updated').length;
    if (stored === 2) break;
  }
  for (const lane of ['a', 'b']) out.token(lane, ', more');
  out.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  const chunks = (await seen).flatMap(({ facts }) =>
    facts.flatMap(fact => {
      if (fact.kind !== 'artifact.updated' || fact.chunk === undefined) return [];
      const isOpened = facts.some(other => other.kind === 'lane.opened' && other.lane === fact.lane);
      return [[fact.lane, fact.chunk.count, fact.chunk.reason, isOpened]];
    }),
  );
  assert.deepEqual(chunks, [
    ['a', 1, 'first', true],
    ['b', 1, 'first', true],
    ['a', 1, 'close', false],
    ['b', 1, 'close', false],
  ]);
  await relay.stop();
});

test('with an event cost of 0 every token is its own frame [S1-27]', async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log, { ...coalesce, eventCostMs: 0 });
  const seen = records(log, 't1');
  await sendMessage(log, 't1');
  const out = writerOf(log, { taskId: 't1' });
  out.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
  for (let index = 0; index < 20; index++) {
    out.token('a', `${index} `);
    // Half of the tokens arrive together, while an append is in flight.
    if (index % 2 === 0 || index > 10) await out.flush();
  }
  out.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  const chunks = (await seen).flatMap(({ facts }) => facts.filter(fact => fact.kind === 'artifact.updated' && fact.chunk));
  assert.equal(chunks.length, 20);
  await relay.stop();
});

test('a notice neither waits for held text nor overtakes the text before it [S2-27]', async () => {
  // Without the notice, text would be held for half a minute.
  const holdMsMax = 30_000;
  const log = createMemoryLog();
  const relay = await relayOn(log, { ...coalesce, eventCostMs: 60_000, holdMsMax });
  await sendMessage(log, 't1');
  const out = writerOf(log, { taskId: 't1' });
  out.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
  const notice = (lane: string) => ({
    kind: 'artifact' as const,
    lane,
    artifact: { name: lane },
    parts: [{ text: '🔧' }],
    append: false,
    last: true,
  });
  const sentAt: number[] = [];
  for (const step of ['before', 'tool_notification_start', 'between', 'tool_notification_end']) {
    sentAt.push(Date.now());
    if (step.startsWith('tool')) out.add(notice(step));
    else for (const token of [step, ' ', 'text']) out.token('a', token);
    await out.flush();
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  out.token('a', 'held');
  await out.flush();
  const stop = new AbortController();
  const seen: [string, number][] = [];
  for await (const { record } of await log.facts.follow('t1', 0, stop.signal)) {
    for (const fact of record.facts) {
      if (fact.kind !== 'artifact.updated') continue;
      const { name, parts } = fact.event.artifactUpdate.artifact;
      seen.push([name === 'response' ? parts[0]!.text! : name!, fact.at]);
    }
    if (seen.length >= 4) stop.abort();
  }
  assert.deepEqual(
    seen.map(([what]) => what),
    ['before text', 'tool_notification_start', 'between text', 'tool_notification_end'],
  );
  for (const index of [1, 3]) assert.ok(seen[index]![1] - sentAt[index]! < holdMsMax / 3, 'the notice is not held');
  await relay.stop();
});

const token = fc.oneof(fc.constantFrom('ha', ' ', '\n', '✅', '👩‍👩‍👧', '\ud83d', '\ude00', ''), fc.string({ maxLength: 5 }));

test('promise 1: relay deaths, conflicts and lost acknowledgements change no character', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          lane: fc.constantFrom('a', 'b'),
          token,
          next: fc.constantFrom('go', 'go', 'go', 'wait', 'notice', 'kill', 'conflict', 'lose'),
        }),
        {
          minLength: 1,
          maxLength: 60,
        },
      ),
      async steps => {
        const log = createMemoryLog();
        // Appends in flight of a killed relay may or may not be stored.
        let processLog = log.another();
        let relay = await relayOn(processLog);
        const seen = records(log, 't1');
        await sendMessage(log, 't1');
        const out = writerOf(log, { taskId: 't1' });
        const sent = { a: '', b: '' };
        let notices = 0;
        for (const lane of ['a', 'b']) out.add({ kind: 'open', lane, artifact: { name: lane } });
        for (const step of steps) {
          out.token(step.lane, step.token);
          sent[step.lane as 'a' | 'b'] += step.token;
          if (step.next === 'wait') await new Promise(resolve => setTimeout(resolve, 3));
          if (step.next === 'conflict') log.faults.conflicts = 1;
          if (step.next === 'lose') log.faults.loseAcks = 1;
          if (step.next === 'notice') {
            out.add({
              kind: 'artifact',
              lane: `n${notices++}`,
              artifact: { name: 'notice' },
              parts: [{ text: 'n' }],
              append: false,
              last: true,
            });
          }
          if (step.next === 'kill') {
            const dead = relay;
            await kill(processLog, dead);
            processLog = log.another();
            relay = await relayOn(processLog);
          }
        }
        for (const lane of ['a', 'b']) out.add({ kind: 'close', lane });
        out.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
        await out.flush();
        const fold = assertSound(await seen);
        await relay.stop();
        assert.equal(fold.textOf('a'), sent.a);
        assert.equal(fold.textOf('b'), sent.b);
        assert.equal(fold.textOf('notice'), 'n'.repeat(notices));
      },
    ),
    { numRuns: 40 },
  );
});

test('promise 1: half of a surrogate pair that is held survives a later notice and the death of its relay', async () => {
  const log = createMemoryLog();
  let processLog = log.another();
  const dead = await relayOn(processLog);
  const seen = records(log, 't1');
  await sendMessage(log, 't1');
  const out = writerOf(log, { taskId: 't1' });
  for (const lane of ['a', 'b']) out.add({ kind: 'open', lane, artifact: { name: lane } });
  out.token('a', '👍'.slice(0, 1));
  await out.flush();
  out.token('b', 'ha'.concat('👍'.slice(0, 1)));
  await out.flush();
  out.add({ kind: 'artifact', lane: 'n', artifact: { name: 'notice' }, parts: [{ text: 'n' }], append: false, last: true });
  await out.flush();
  await storedWhen(log, ({ aggregate }) => aggregate.producers.agent?.n === 5, 't1');
  await kill(processLog, dead);
  processLog = log.another();
  const relay = await relayOn(processLog);
  for (const lane of ['a', 'b']) out.token(lane, '👍'.slice(1));
  for (const lane of ['a', 'b']) out.add({ kind: 'close', lane });
  out.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  await out.flush();
  const fold = assertSound(await seen);
  await relay.stop();
  assert.deepEqual([fold.textOf('a'), fold.textOf('b'), fold.textOf('notice')], ['👍', 'ha👍', 'n']);
});

test('a message whose first record exceeds the limit of the log is rejected, counted, and does not block other tasks', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog({ shards: 1, recordBytesMax: 4_096 });
  const rejected = Promise.withResolvers<string | undefined>();
  const metrics = countingMetrics((name, _count, { reason }) => name === 'inputsRejected' && rejected.resolve(reason));
  const relay = await relayWith(log.another(), { coalesce, metrics });
  await sendMessage(log, 'large', { text: 'x'.repeat(3_700) });
  const stop = new AbortController();
  const next = (await log.facts.follow('small', 'new', stop.signal))[Symbol.asyncIterator]();
  await sendMessage(log, 'small');
  assert.equal((await next.next()).value?.record.facts[0]?.kind, 'task.created');
  stop.abort();
  assert.equal(await rejected.promise, 'too_large');
  assert.equal(await log.facts.last('large'), undefined);
  await relay.stop();
});

test('two relays split the shards evenly, and one owns all when the other stops', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const first = await relayOn(log.another());
  const second = await relayOn(log.another());
  await until(() => first.shards.size === 8 && second.shards.size === 8);
  await first.stop();
  await until(() => second.shards.size === 16);
  await second.stop();
});

test('a relay that takes shards checks the stored records of at most eight of them at a time', async t => {
  const log = createMemoryLog({ shards: 32 });
  const first = await relayOn(log);
  t.after(() => first.stop());
  const tasks = Array.from({ length: 100 }, (_, index) => `t${index}`);
  for (const task of tasks) await sendMessage(log, task);
  await Promise.all(tasks.map(task => storedWhen(log, () => true, task)));
  await first.stop();
  const processLog = log.another();
  const [isLost, readShard] = [
    processLog.facts.isLost.bind(processLog.facts),
    processLog.inputs.readShard.bind(processLog.inputs),
  ];
  const [checking, reading] = [new Set<number>(), new Set<number>()];
  let most = 0;
  processLog.facts.isLost = async mark => {
    const shard = log.layouts.shardOf(taskOfFactsId(mark.id));
    if (!reading.has(shard)) checking.add(shard);
    most = Math.max(most, checking.size);
    for (let turn = 0; turn < 10; turn += 1) await new Promise(resolve => setImmediate(resolve));
    return isLost(mark);
  };
  processLog.inputs.readShard = (shard, ...options) => {
    checking.delete(shard);
    reading.add(shard);
    return readShard(shard, ...options);
  };
  const second = await relayOn(processLog);
  t.after(() => second.stop());
  await until(() => reading.size === 32, 'all shards are read');
  assert.ok(most > 1 && most <= 8, `${most} shards at a time`);
});

test('a full work queue does not fail a shard: the work is requested until there is room, and other tasks continue', {
  timeout: 120_000,
}, async t => {
  const log = createMemoryLog({ shards: 1 });
  const processLog = log.another();
  const request = processLog.work.request.bind(processLog.work);
  let refusals = 0;
  processLog.work.request = async (role, work, options) => {
    if (work.taskId === 'refused' && ++refusals <= 2) throw new LogFull('A2A_WORK is full');
    return request(role, work, options);
  };
  let reads = 0;
  const readShard = processLog.inputs.readShard.bind(processLog.inputs);
  processLog.inputs.readShard = (...args) => {
    reads += 1;
    return readShard(...args);
  };
  const relay = await relayOn(processLog);
  t.after(() => relay.stop());
  const taken: string[] = [];
  const stop = new AbortController();
  t.after(() => stop.abort());
  void log.work.take('agent.echo', { slots: 2, signal: stop.signal }, async ({ work }) => void taken.push(work.taskId));
  await sendMessage(log, 'refused');
  await sendMessage(log, 'other');
  await until(() => taken.length >= 2);
  assert.deepEqual(taken, ['other', 'refused']);
  assert.deepEqual([refusals, reads], [3, 1], 'the shard was read once');
});

test('a relay that takes over logs its shards together, at its start and after the other one stopped', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog({ shards: 16 });
  const lines: { msg: string; shards?: number; cause?: string }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const recorded = createLogger({ service: 'relay', instance: 'test', level: 'info', destination });
  const first = await relayOn(log);
  const second = await relayWith(log, { coalesce, logger: recorded });
  await until(async () => second.shards.size === 8);
  await first.stop();
  await until(async () => second.shards.size === 16);
  await second.stop();
  const acquired = lines.filter(({ msg }) => msg === 'shards acquired');
  assert.equal(
    acquired.reduce((sum, { shards = 0 }) => sum + shards, 0),
    16,
  );
  assert.ok(acquired.every(({ cause }) => cause === 'released') && acquired.length <= 4, JSON.stringify(acquired));
  assert.equal(lines.findLast(({ msg }) => msg === 'shards released')?.shards, 16);
});

test('a relay that stops while the work queue is full no longer requests work; the next owner of the shard requests it', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const other = log.another();
  let refusals = 0;
  log.work.request = async () => {
    refusals += 1;
    throw new LogFull('A2A_WORK is full');
  };
  const relay = await relayOn(log);
  await sendMessage(log, 't1');
  await until(async () => refusals > 0);
  await relay.stop();
  const before = refusals;
  // Waits longer than two pauses between requests.
  await sleep(2_500);
  assert.equal(refusals, before);
  const next = await relayOn(other);
  const stop = new AbortController();
  const taken = Promise.withResolvers<string>();
  const taking = other.work.take('agent.echo', { slots: 1, signal: stop.signal }, async ({ work }) => taken.resolve(work.taskId));
  assert.equal(await taken.promise, 't1');
  stop.abort();
  await taking;
  await next.stop();
});

test('a shard whose log refuses at once restarts less and less often, and quickly again after progress', async t => {
  t.mock.method(Math, 'random', () => 0.99);
  const log = createMemoryLog({ shards: 1 });
  const failedAtMs: number[] = [];
  const metrics = countingMetrics((name, count) => {
    if (name === 'shardRestarts' && count > 0) failedAtMs.push(performance.now());
  });
  const { append } = log.facts;
  let isRefused = true;
  log.facts.append = async (...args) => {
    if (isRefused) throw new LogUnavailable('refused: account has insufficient resources');
    return append.apply(log.facts, args);
  };
  const relay = await createRelay({ log, instance: 'relay', coalesce, metrics, logger });
  const pauses = () => failedAtMs.slice(1).map((at, index) => at - failedAtMs[index]!);
  try {
    await sendMessage(log, 't1');
    await until(async () => failedAtMs.length >= 4);
    assert.deepEqual(
      pauses().map((ms, index) => ms >= 95 * 2 ** index),
      [true, true, true],
      String(pauses()),
    );
    const againMs: number[] = [];
    // A busy machine can lengthen a pause, so only one of several is short for sure. Without progress each would be longer than 800 ms.
    for (let round = 2; againMs.every(ms => ms >= 800) && round <= 6; round += 1) {
      const before = (await log.leases.get('shard.0'))?.value.checkpoint ?? 0;
      isRefused = false;
      await until(async () => ((await log.leases.get('shard.0'))?.value.checkpoint ?? 0) > before);
      isRefused = true;
      const failures = failedAtMs.length;
      await sendMessage(log, `t${round}`);
      await until(() => failedAtMs.length >= failures + 2);
      againMs.push(pauses()[failures]!);
    }
    assert.ok(
      againMs.some(ms => ms < 800),
      `after progress the pauses are ${againMs} ms`,
    );
  } finally {
    await relay.stop();
  }
});
