import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { costsOf, readTaskPaths } from '@hopline/task-audit';
import { collect } from '../../../test/kit/collect.ts';
import { NO_METRICS } from '../../../test/kit/no-metrics.ts';
import { untilTick } from '../../../test/kit/until.ts';
import {
  PATH_FACT_BYTES_MAX,
  PATH_INPUT_BYTES_MAX,
  PATH_PAUSE_MS,
  PATH_RECORDS_MAX,
  PathMeasurement,
} from './path-measurement.ts';
import type { StoredChange } from './pipeline-context.ts';
import { logger, relayOn, sendMessage, storedWhen, write, writerOf } from './relay.test-kit.ts';

type Added = { seconds: Map<string, number>; turns: Map<string, number> };

/** Counts instead of the metrics of a relay. */
function counted(): Added & { metrics: Pick<typeof NO_METRICS, 'pathTime' | 'pathTurns'> } {
  const seconds = new Map<string, number>();
  const turns = new Map<string, number>();
  const into = (map: Map<string, number>, key: string | undefined, n: number) => map.set(key!, (map.get(key!) ?? 0) + n);
  return {
    ...{ seconds, turns },
    metrics: {
      pathTime: { add: (n, labels) => into(seconds, labels?.hop, n) },
      pathTurns: { add: (n, labels) => into(turns, labels?.outcome, n) },
    },
  };
}

/** Ends a task of two chunks, and returns the step of its end. */
async function endedTask(log: MemoryLog, taskId: string, text = 'b'): Promise<StoredChange> {
  await sendMessage(log, taskId);
  const writer = writerOf(log, { taskId });
  await write(
    writer,
    { kind: 'open', lane: 'a', artifact: { name: 'response' } },
    { kind: 'text', lane: 'a', tokens: ['a'], dt: [0] },
  );
  await write(writer, { kind: 'text', lane: 'a', tokens: [text], dt: [0] }, { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  const { record, seq } = await storedWhen(log, ({ aggregate }) => aggregate.state === 'TASK_STATE_COMPLETED', taskId);
  const { facts, aggregate, startSeq, startStoredAt } = record;
  return { facts, aggregate, seq, startSeq, startStoredAt, storedBytes: 1 };
}

/** Runs a relay until the tasks have ended. */
async function withRelay<T>(log: MemoryLog, fn: () => Promise<T>): Promise<T> {
  const relay = await relayOn(log);
  try {
    return await fn();
  } finally {
    await relay.stop();
  }
}

/** Lets the measurement that began end. */
const settled = async (turns: Map<string, number>, outcome: string) => {
  await untilTick(() => turns.has(outcome));
};

test('one of several turns that end within a pause is measured, and matches the trace; the others are counted', async t => {
  const log = createMemoryLog();
  const steps = await withRelay(log, () => Promise.all(['t1', 't2', 't3'].map(taskId => endedTask(log, taskId))));
  const { metrics, seconds, turns } = counted();
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  const measurement = new PathMeasurement({ log, metrics, logger, now: () => (nowMs += 100) });
  for (const step of steps) measurement.stored(step);
  assert.deepEqual([...turns], [['skipped', 2]]);
  t.mock.timers.tick(PATH_PAUSE_MS - 1);
  measurement.stored({ ...steps[0]!, facts: [] });
  assert.deepEqual([...turns], [['skipped', 2]], 'a record that ends no turn, before the pause is over');
  t.mock.timers.tick(1);
  await settled(turns, 'measured');
  const { turns: paths } = (await readTaskPaths(log, 't3'))!;
  const sums = new Map<string, number>();
  for (const { hop, ms } of costsOf(paths)) sums.set(hop, (sums.get(hop) ?? 0) + ms / 1_000);
  assert.deepEqual(seconds, sums);
  const [{ fromMs, toMs }] = paths as [(typeof paths)[number]];
  const allMs = [...seconds.values()].reduce((sum, one) => sum + one * 1_000, 0);
  assert.ok(allMs >= 0.99 * (toMs - fromMs), `${allMs} of ${toMs - fromMs} ms`);
  // The measurement took 100 ms, so the next one begins 5 s later.
  turns.clear();
  measurement.stored(steps[0]!);
  t.mock.timers.tick(4_999);
  assert.deepEqual([...turns], []);
  t.mock.timers.tick(1);
  await settled(turns, 'measured');
  measurement.stored(steps[1]!);
  measurement.stop();
  t.mock.timers.tick(60_000);
  assert.deepEqual([...turns], [['measured', 1]], 'a relay that stops measures nothing');
});

test('a turn that is too long, that the log no longer has, or that cannot be read is counted as such', async () => {
  const log = createMemoryLog();
  const [long, short] = await withRelay(log, async () => [
    await endedTask(log, 'long', 'x'.repeat(PATH_INPUT_BYTES_MAX)),
    await endedTask(log, 'short'),
  ]);
  const outcomeOf = async (step: StoredChange, outcome: string, own: Pick<MemoryLog, 'inputs' | 'facts'> = log) => {
    const { metrics, turns, seconds } = counted();
    const measurement = new PathMeasurement({ log: own, metrics, logger, now: () => 0, pauseMs: 1 });
    measurement.stored(step);
    await settled(turns, outcome);
    assert.deepEqual([...turns], [[outcome, 1]]);
    if (outcome !== 'measured') assert.equal(seconds.size, 0);
    measurement.stop();
  };
  await outcomeOf(long, 'too_long');
  await outcomeOf(short, 'measured');
  const unread = { ...short, aggregate: { ...short.aggregate, generation: short.aggregate.generation + 1 } };
  await outcomeOf(unread, 'incomplete');
  await outcomeOf({ ...short, aggregate: { ...short.aggregate, taskId: 'unknown' } }, 'incomplete');
  const { inputs } = log;
  const broken = {
    facts: log.facts,
    inputs: Object.assign(Object.create(inputs) as typeof inputs, {
      read: () => {
        throw new Error('no connection');
      },
    }),
  };
  await outcomeOf(short, 'failed', broken);
});

test('a task with as many records as the limit is measured, with one record more it is too long', async () => {
  const log = createMemoryLog();
  const step = await withRelay(log, () => endedTask(log, 't'));
  const stored = [...(await collect(log.facts.read('t', 1))), ...(await collect(log.inputs.read('t')))];
  const cancel = (n: number) =>
    log.inputs.append('t', { v: 1, at: Date.now(), from: 'client', input: { kind: 'cancel' } }, { id: `cancel-${n}` });
  for (let n = stored.length; n < PATH_RECORDS_MAX; n += 1) await cancel(n);
  for (const outcome of ['measured', 'too_long']) {
    const { metrics, turns } = counted();
    const measurement = new PathMeasurement({ log, metrics, logger, now: () => 0, pauseMs: 1 });
    measurement.stored(step);
    await settled(turns, outcome);
    await cancel(PATH_RECORDS_MAX);
  }
});

test('a relay measures the turns that it ends', async t => {
  const log = createMemoryLog();
  const { metrics, turns } = counted();
  const relay = await relayOn(log, { metrics: Object.assign(Object.create(NO_METRICS), metrics), pathPauseMs: 1 });
  t.after(() => relay.stop());
  await endedTask(log, 't');
  await settled(turns, 'measured');
});

test('a task whose records have as many bytes as the limit is measured; a larger one is never read', async () => {
  const log = createMemoryLog();
  const step = await withRelay(log, () => endedTask(log, 't'));
  let reads = 0;
  const { facts } = log;
  const counting = {
    inputs: log.inputs,
    facts: {
      last: (taskId: string) => facts.last(taskId),
      read: (taskId: string, from: number) => {
        reads += 1;
        return facts.read(taskId, from);
      },
    } as MemoryLog['facts'],
  };
  for (const [storedBytes, outcome, expected] of [
    [PATH_FACT_BYTES_MAX, 'measured', 1],
    [PATH_FACT_BYTES_MAX + 1, 'too_long', 1],
  ] as const) {
    const { metrics, turns } = counted();
    const measurement = new PathMeasurement({ log: counting, metrics, logger, now: () => 0, pauseMs: 1 });
    measurement.stored({ ...step, storedBytes });
    await settled(turns, outcome);
    assert.equal(reads, expected);
  }
});

test('a measurement stops reading facts at the limit of their bytes', async () => {
  const log = createMemoryLog();
  const step = await withRelay(log, () => endedTask(log, 't'));
  const records = await collect(log.facts.read('t', 1));
  let read = 0;
  const withBytes = (bytes: number) => ({
    inputs: log.inputs,
    facts: {
      last: (taskId: string) => log.facts.last(taskId),
      read: async function* () {
        read = 0;
        for (const record of records) {
          read += 1;
          yield { ...record, bytes: read === 1 ? bytes : 0 };
        }
      },
    } as unknown as MemoryLog['facts'],
  });
  for (const [bytes, outcome, expected] of [
    [PATH_FACT_BYTES_MAX, 'measured', records.length],
    [PATH_FACT_BYTES_MAX + 1, 'too_long', 1],
  ] as const) {
    const { metrics, turns } = counted();
    const measurement = new PathMeasurement({ log: withBytes(bytes), metrics, logger, now: () => 0, pauseMs: 1 });
    measurement.stored(step);
    await settled(turns, outcome);
    assert.equal(read, expected);
  }
});
