import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DialectName } from '@hopline/a2a';
import type { Fact } from '@hopline/events';
import type { FactLog } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { BACKLOG_BYTES_MAX, Backlog } from './backlog.ts';
import type { Pending } from './pending.ts';
import { TaskFacts } from './task-facts.test-kit.ts';

const QUIET_MS = 20;

type Start = { dialect?: DialectName; generation?: number; seq?: number };

function backlogOf(
  log: { facts: FactLog },
  stop: AbortController,
  { dialect = '1.0', generation = 0, seq = 0 }: Start = {},
): Backlog {
  return new Backlog(log.facts, { taskId: 't', dialect, generation, seq }, stop.signal);
}

/** `upTo`: is not begun before this generation waits. */
async function drained(backlog: Backlog, upTo?: number): Promise<Pending[]> {
  const all: Pending[] = [];
  await backlog.ready(upTo, 60_000);
  while ((await backlog.ready(undefined, 60_000)) === 'ready') all.push(backlog.take()!);
  return all;
}

/** The log, with a count of the records that were read from it. */
function counting({ facts }: MemoryLog): { facts: FactLog; read: () => number } {
  let read = 0;
  const counted: FactLog = {
    append: (record, options) => facts.append(record, options),
    last: taskId => facts.last(taskId),
    read: (taskId, from) => facts.read(taskId, from),
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

test('a burst waits as few deliveries, in order and whole; what was delivered does not come again', async () => {
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

test('what was begun is taken again as it was begun, whatever waits behind it by now', async () => {
  const log = createMemoryLog();
  await task(log, ['a', 'b', 'c', 'd']);
  const backlog = backlogOf(log, new AbortController(), { generation: 1 });
  assert.equal(await backlog.ready(5, 60_000), 'ready');
  assert.deepEqual([backlog.take(3)?.generation, backlog.take()?.generation], [3, 5]);
});

test('it waits for all that was begun, says when it is quiet, and when its signal aborts', async () => {
  const log = createMemoryLog();
  const facts = new TaskFacts(log, 't');
  await facts.create();
  await facts.text('a');
  const stop = new AbortController();
  const backlog = backlogOf(log, stop, { generation: 1 });
  assert.equal(await backlog.ready(3, QUIET_MS), 'quiet');
  const ready = backlog.ready(3, 60_000);
  await facts.text('b');
  assert.equal(await ready, 'ready');
  assert.equal(backlog.take(3)?.count, 2);
  assert.equal(backlog.take(), undefined);
  const waiting = backlog.ready(undefined, 60_000);
  stop.abort();
  assert.equal(await waiting, 'stopped');
});

test('a backlog that was quiet once waits again, and does not hold up the process meanwhile', async () => {
  const log = createMemoryLog();
  await task(log, [], false);
  const stop = new AbortController();
  const backlog = backlogOf(log, stop, { generation: 1 });
  const order: string[] = [];
  for (let round = 0; round < 3; round += 1) {
    await Promise.all([
      backlog.ready(undefined, 10 * QUIET_MS).then(state => order.push(state)),
      new Promise(resolve => setTimeout(resolve, QUIET_MS)).then(() => order.push('timer')),
    ]);
  }
  stop.abort();
  assert.deepEqual(order, ['timer', 'quiet', 'timer', 'quiet', 'timer', 'quiet']);
});

test('a slow webhook does not fill memory: the log is read no further than the limit, and all of it in the end', async () => {
  const log = createMemoryLog();
  const piece = 'x'.repeat(8 * 1024);
  const chunks = Array.from({ length: 200 }, (_, n) => `${n} ${piece}`);
  await task(log, chunks);
  const { facts, read } = counting(log);
  const stop = new AbortController();
  const backlog = backlogOf({ facts }, stop);
  while (read() < BACKLOG_BYTES_MAX / (9 * 1024)) await new Promise(resolve => setTimeout(resolve, 5));
  assert.equal(await backlog.ready(10_000, QUIET_MS), 'ready');
  await new Promise(resolve => setTimeout(resolve, QUIET_MS));
  // Every piece counts a little more than its 8 KiB; the one that passes the limit is in.
  assert.ok(read() <= BACKLOG_BYTES_MAX / (8 * 1024) + 3, `${read()} records`);
  const text = (await drained(backlog))
    .map(({ event }) => ('artifactUpdate' in event ? event.artifactUpdate.artifact.parts[0]!.text : ''))
    .join('');
  assert.equal(text, chunks.join(''));
});

test('1.0 reads from where it was; who is told whole tasks or places of artifacts reads from the beginning', async () => {
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

test('a log that fails is said to who waits', async () => {
  const log = createMemoryLog();
  await task(log, ['a'], false);
  await log.close();
  await assert.rejects(backlogOf(log, new AbortController()).ready(undefined, 60_000));
});

test('what was carried forward in several parts is told to its end by a notifier that begins again between two of them [S4-44]', {
  timeout: 20_000,
}, async () => {
  const log = createMemoryLog();
  await task(log, ['a', 'b', 'c', 'd'], false);
  const { seq, record } = (await log.facts.last('t'))!;
  const facts: Fact[] = [];
  for await (const stored of log.facts.read('t', 1)) facts.push(...stored.record.facts);
  const seqs: number[] = [];
  for (const [index, fact] of facts.entries()) {
    const carried = { part: index + 1, last: index === facts.length - 1, facts: [fact] };
    const first = carried.last ? seqs[0]! : record.startSeq;
    const expected = seqs.at(-1) ?? seq;
    seqs.push(
      (await log.facts.append({ ...record, facts: [], startSeq: first, copied: carried }, { expected, id: `carry ${index}` }))
        .seq,
    );
  }
  const told = facts.findIndex(fact => 'generation' in fact && fact.generation === 3);
  const stop = new AbortController();
  const backlog = backlogOf(log, stop, { generation: 3, seq: seqs[told]! });
  assert.equal(await backlog.ready(5, 5_000), 'ready');
  assert.deepEqual(backlog.take()!.generation, 5);
  stop.abort();
});
