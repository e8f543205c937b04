import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DialectName } from '@hopline/a2a';
import type { Fact } from '@hopline/events';
import { type FactLog, LogUnavailable } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { until } from '../../../test/kit/until.ts';
import { BACKLOG_BYTES_MAX, Backlog, BacklogBudget } from './backlog.ts';
import type { PendingDelivery } from './pending-delivery.ts';
import { TaskFacts } from './task-facts.test-kit.ts';

const IDLE_MS = 20;

type Start = { dialect?: DialectName; generation?: number; seq?: number; sending?: number; budget?: BacklogBudget };

function backlogOf(
  log: { facts: FactLog },
  stop: AbortController,
  { dialect = '1.0', generation = 0, seq = 0, sending, budget = new BacklogBudget() }: Start = {},
): Backlog {
  return new Backlog(log.facts, { taskId: 't', dialect, generation, seq, sending }, stop.signal, budget);
}

/** `upTo`: the generation for which the first delivery waits. */
async function drained(backlog: Backlog, upTo?: number): Promise<PendingDelivery[]> {
  const all: PendingDelivery[] = [];
  await backlog.ready(upTo, 60_000);
  while ((await backlog.ready(undefined, 60_000)) === 'ready') all.push(backlog.take()!);
  return all;
}

/** The fact log with a count of the records read from it. */
function counting({ facts }: MemoryLog): { facts: FactLog; read: () => number } {
  let read = 0;
  const counted: FactLog = {
    append: (record, options) => facts.append(record, options),
    last: taskId => facts.last(taskId),
    lastOfEach: taskIds => facts.lastOfEach(taskIds),
    read: (taskId, from) => facts.read(taskId, from),
    readStoredShard: (...args) => facts.readStoredShard(...args),
    extent: () => facts.extent(),
    isLost: mark => facts.isLost(mark),
    follow: async (taskId, after, signal) => {
      const records = await facts.follow(taskId, after, signal);
      return (async function* () {
        for await (const record of records) {
          read += 1;
          yield record;
        }
      })();
    },
  };
  return { facts: counted, read: () => read };
}

async function task(log: MemoryLog, chunks: string[], end = true): Promise<void> {
  const facts = new TaskFacts(log, 't');
  await facts.create();
  for (const text of chunks) await facts.text(text);
  if (end) await facts.status('TASK_STATE_COMPLETED');
}

test('a burst becomes a few complete deliveries in order; delivered events are not repeated', async () => {
  const log = createMemoryLog();
  await task(log, ['a', 'b', 'c', 'd']);
  const stop = new AbortController();
  assert.deepEqual(
    (await drained(backlogOf(log, stop), 6)).map(({ generation, count, terminal }) => [generation, count, terminal]),
    [
      [1, 1, false],
      [5, 4, false],
      [6, 1, true],
    ],
  );
  const rest = await drained(backlogOf(log, stop, { generation: 3 }), 6);
  assert.deepEqual(
    rest.map(({ generation, count }) => [generation, count]),
    [
      [5, 2],
      [6, 1],
    ],
  );
});

test('a delivery in progress is repeated unchanged, whatever waits behind it by then', async () => {
  const log = createMemoryLog();
  await task(log, ['a', 'b', 'c', 'd']);
  const backlog = backlogOf(log, new AbortController(), { generation: 1 });
  assert.equal(await backlog.ready(5, 60_000), 'ready');
  assert.deepEqual([backlog.take(3)?.generation, backlog.take()?.generation], [3, 5]);
});

test('a whole task is repeated unchanged; the next delivery has the later events', async () => {
  const log = createMemoryLog();
  await task(log, ['a', 'b', 'c', 'd']);
  const backlog = backlogOf(log, new AbortController(), { dialect: '0.3', generation: 1, sending: 3 });
  assert.equal(await backlog.ready(6, 60_000), 'ready');
  const all = [backlog.take(3), backlog.take(), backlog.take()];
  assert.deepEqual(
    all.map(one => [one?.generation, one?.count, one?.task?.artifacts?.[0]?.parts[0]?.text, one?.task?.status.state]),
    [
      [3, 2, 'ab', 'TASK_STATE_SUBMITTED'],
      [5, 2, 'abcd', 'TASK_STATE_SUBMITTED'],
      [6, 1, 'abcd', 'TASK_STATE_COMPLETED'],
    ],
  );
});

test('ready waits for every event of a delivery in progress, and reports idleness and an abort', async () => {
  const log = createMemoryLog();
  const facts = new TaskFacts(log, 't');
  await facts.create();
  await facts.text('a');
  const stop = new AbortController();
  const backlog = backlogOf(log, stop, { generation: 1 });
  assert.equal(await backlog.ready(3, IDLE_MS), 'idle');
  const ready = backlog.ready(3, 60_000);
  await facts.text('b');
  assert.equal(await ready, 'ready');
  assert.equal(backlog.take(3)?.count, 2);
  assert.equal(backlog.take(), undefined);
  const waiting = backlog.ready(undefined, 60_000);
  stop.abort();
  assert.equal(await waiting, 'stopped');
});

test('an idle backlog waits again without blocking the event loop', async () => {
  const log = createMemoryLog();
  await task(log, [], false);
  const stop = new AbortController();
  const backlog = backlogOf(log, stop, { generation: 1 });
  const order: string[] = [];
  for (let round = 0; round < 3; round += 1) {
    await Promise.all([
      backlog.ready(undefined, 10 * IDLE_MS).then(state => order.push(state)),
      new Promise(resolve => setTimeout(resolve, IDLE_MS)).then(() => order.push('timer')),
    ]);
  }
  stop.abort();
  assert.deepEqual(order, ['timer', 'idle', 'timer', 'idle', 'timer', 'idle']);
});

test('a slow webhook does not fill memory: reading pauses at the limit, and still completes', async () => {
  const log = createMemoryLog();
  const piece = 'x'.repeat(8 * 1024);
  const chunks = Array.from({ length: 200 }, (_, n) => `${n} ${piece}`);
  await task(log, chunks);
  const { facts, read } = counting(log);
  const stop = new AbortController();
  const backlog = backlogOf({ facts }, stop);
  await until(() => read() >= BACKLOG_BYTES_MAX / (9 * 1024));
  assert.equal(await backlog.ready(10_000, IDLE_MS), 'ready');
  await new Promise(resolve => setTimeout(resolve, IDLE_MS));
  // Every chunk counts slightly more than its 8 KiB, and the chunk that exceeds the limit is included.
  assert.ok(read() <= BACKLOG_BYTES_MAX / (8 * 1024) + 3, `${read()} records`);
  const text = (await drained(backlog))
    .map(({ event }) => ('artifactUpdate' in event ? event.artifactUpdate.artifact.parts[0]!.text : ''))
    .join('');
  assert.equal(text, chunks.join(''));
});

test('all backlogs share a limit: beyond it each holds one record, and still completes', async () => {
  const log = createMemoryLog();
  await task(log, ['a', 'b', 'c', 'd']);
  const budget = new BacklogBudget(1);
  const stops = [new AbortController(), new AbortController()];
  const logs = stops.map(() => counting(log));
  const backlogs = stops.map((stop, index) => backlogOf(logs[index]!, stop, { budget }));
  for (const backlog of backlogs) assert.equal(await backlog.ready(undefined, 60_000), 'ready');
  await new Promise(resolve => setTimeout(resolve, IDLE_MS));
  assert.deepEqual(
    logs.map(({ read }) => read()),
    [1, 1],
  );
  const [first, second] = backlogs as [Backlog, Backlog];
  assert.equal((await drained(first)).at(-1)?.terminal, true);
  assert.equal((await drained(second)).at(-1)?.terminal, true);
  assert.equal(budget.bytes, 0);
});

test('a stopped backlog no longer counts toward the limit; a delivery in progress is read completely, even beyond it', async () => {
  const log = createMemoryLog();
  await task(log, ['a', 'b', 'c', 'd']);
  const budget = new BacklogBudget(1);
  const stop = new AbortController();
  const backlog = backlogOf(log, stop, { budget, generation: 1, sending: 5 });
  assert.equal(await backlog.ready(5, 60_000), 'ready');
  assert.equal(budget.bytes > 0, true);
  stop.abort();
  assert.equal(budget.bytes, 0);
  assert.deepEqual([backlog.take(5)?.generation, budget.bytes], [5, 0]);
});

test('1.0 resumes reading at its sequence; dialects with whole tasks or artifact indexes read from the beginning', async () => {
  const log = createMemoryLog();
  await task(log, ['a', 'b', 'c']);
  const { seq } = (await log.facts.last('t'))!;
  const reads: Record<string, number> = {};
  for (const dialect of ['1.0', '0.3', 'legacy'] as const) {
    const { facts, read } = counting(log);
    const [last] = await drained(backlogOf({ facts }, new AbortController(), { dialect, generation: 4, seq: seq - 1 }));
    assert.equal(last?.generation, 5);
    reads[dialect] = read();
    if (dialect === '0.3') assert.equal(last?.task?.artifacts?.[0]?.parts[0]?.text, 'abc');
    if (dialect !== '0.3') assert.equal(last?.task, undefined);
  }
  assert.equal(reads['1.0'], 2);
  assert.ok(reads['0.3']! > 2 && reads.legacy! > 2);
});

test('a log failure rejects the waiting call', async () => {
  const log = createMemoryLog();
  await task(log, ['a'], false);
  await log.close();
  await assert.rejects(backlogOf(log, new AbortController()).ready(undefined, 60_000), LogUnavailable);
});

test('a notifier that restarts between two parts of a copy-forward delivers the rest of the task [S4-44]', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  await task(log, ['a', 'b', 'c', 'd'], false);
  const { seq, record } = (await log.facts.last('t'))!;
  const facts: Fact[] = [];
  for await (const stored of log.facts.read('t', 1)) facts.push(...stored.record.facts);
  const seqs: number[] = [];
  for (const [index, fact] of facts.entries()) {
    const copied = { part: index + 1, last: index === facts.length - 1, facts: [fact] };
    const startSeq = copied.last ? seqs[0]! : record.startSeq;
    const expected = seqs.at(-1) ?? seq;
    seqs.push((await log.facts.append({ ...record, facts: [], startSeq, copied }, { expected, id: `copy:${index}` })).seq);
  }
  const delivered = facts.findIndex(fact => 'generation' in fact && fact.generation === 3);
  const stop = new AbortController();
  const backlog = backlogOf(log, stop, { generation: 3, seq: seqs[delivered]! });
  assert.equal(await backlog.ready(5, 5_000), 'ready');
  assert.deepEqual(backlog.take()!.generation, 5);
  stop.abort();
});

test('after a loss of records, events that were folded again are delivered wherever they are in the log', async () => {
  for (const others of [0, 40]) {
    const log = createMemoryLog();
    await task(log, ['a', 'b', 'c', 'd'], false);
    const { seq } = (await log.facts.last('t'))!;
    log.loseFacts(2);
    for (let n = 0; n < others; n += 1) log.garbage('facts', 'other');
    const { seq: expected, record } = (await log.facts.last('t'))!;
    const status = { state: 'TASK_STATE_COMPLETED' } as const;
    const event = { statusUpdate: { taskId: 't', contextId: record.aggregate.contextId, status } };
    const end: Fact = { kind: 'status.changed', at: 1, generation: 1_000, lostAfter: record.aggregate.generation, event };
    const aggregate = { ...record.aggregate, state: status.state, generation: 1_000 };
    await log.facts.append({ ...record, facts: [end], aggregate }, { expected, id: 'again' });
    for (let n = 0; n < others; n += 1) log.garbage('facts', 'other');
    const rest = await drained(backlogOf(log, new AbortController(), { generation: 5, seq }));
    assert.deepEqual(
      rest.map(({ generation, terminal }) => [generation, terminal]),
      [[1_000, true]],
    );
  }
});

test('after a loss of records, another record at the sequence of the newest delivered event does not hide those before it', async () => {
  const log = createMemoryLog();
  await task(log, ['a', 'b', 'c', 'd'], false);
  const { seq } = (await log.facts.last('t'))!;
  log.loseFacts(seq - 2);
  const states = ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'] as const;
  for (const [index, state] of states.entries()) {
    const { seq: expected, record } = (await log.facts.last('t'))!;
    const { contextId, generation: lostAfter } = record.aggregate;
    const generation = 1_000 + index;
    const event = { statusUpdate: { taskId: 't', contextId, status: { state } } };
    const fact: Fact = { kind: 'status.changed', at: 1, generation, ...(index === 0 && { lostAfter }), event };
    const aggregate = { ...record.aggregate, state, generation };
    await log.facts.append({ ...record, facts: [fact], aggregate }, { expected, id: state });
  }
  assert.equal((await log.facts.last('t'))?.seq, seq);
  const rest = await drained(backlogOf(log, new AbortController(), { generation: 5, seq }));
  assert.deepEqual(
    rest.map(({ generation }) => generation),
    [1_000, 1_001],
  );
});
