import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isTerminal, stateWord } from '@hopline/a2a';
import type { AgentInput, InputRecord } from '@hopline/events';
import { listKeyOf, type StreamExtent, toLogExtent } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { INPUTS_LOST, WORKER_GONE } from '@hopline/task';
import { until } from '../../../test/kit/until.ts';
import type { OpenTask } from './index-entry.ts';
import { IndexWrites } from './index-writes.ts';
import { COALESCE, factsOf, kill, logger, relayOn as relayWith, sendMessage, storedWhen } from './relay.test-kit.ts';
import {
  COPIES_PER_SWEEP_MAX,
  COPY_FORWARD_MARGIN,
  copyForwardBelow,
  ENTRIES_PER_SWEEP_MAX,
  EXAMINED_PER_SWEEP_MAX,
  RetentionSweep,
  SILENT_MS_MIN,
} from './retention-sweep.ts';

const HOUR_MS = 3_600_000;
const SILENT_MS = 150;
const coalesce = { ...COALESCE, chunkBytesMax: 262_144 };

const relayOn = (log: MemoryLog, copyForwardAfterMs?: number) =>
  relayWith(log, { coalesce, sweepMs: 25, silentMs: SILENT_MS, copyForwardAfterMs, moveMs: 3_600_000 });

/** Appends one record of the agent. `n`: ordinal of its first input. */
async function appendAgent(log: MemoryLog, taskId: string, inputs: AgentInput[], n = 1): Promise<void> {
  const from = { id: 'agent', agent: 'echo', turn: 1, attempt: 1 };
  await log.inputs.append(taskId, { v: 1, at: Date.now(), from, n, inputs }, { id: `${taskId}:agent:1:0:1:${n}` });
}

const BYTES_MAX = 256 * 1024;
const WAITS = { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' } as const;
const WORKS = { kind: 'status', state: 'TASK_STATE_WORKING' } as const;
const COMPLETED = { kind: 'status', state: 'TASK_STATE_COMPLETED' } as const;

/** Writes the given number of bytes in ended tasks, but no faster than the relay copies open tasks forward. */
async function fill(log: MemoryLog, name: string, bytes: number, open: readonly string[]): Promise<void> {
  const text = 'x'.repeat(8 * 1024);
  const inputs: AgentInput[] = [
    { kind: 'open', lane: 'a', artifact: {} },
    { kind: 'text', lane: 'a', tokens: [text] },
    COMPLETED,
  ];
  for (let filler = 1; filler <= bytes / text.length; filler++) {
    await sendMessage(log, `${name}-${filler}`);
    await appendAgent(log, `${name}-${filler}`, inputs);
    await storedWhen(log, ({ aggregate }) => isTerminal(aggregate.state), `${name}-${filler}`);
    for (const taskId of open)
      await until(async () => ((await log.tasks.get(taskId))?.value.startSeq ?? 0) >= copyForwardBelow(await log.facts.extent()));
  }
}

test('open tasks whose beginning is about to be discarded are copied', () => {
  const extent = { firstSeq: 101, lastSeq: 500 };
  assert.equal(copyForwardBelow({ ...extent, fill: 0 }), 101);
  assert.equal(copyForwardBelow({ ...extent, fill: 1 - COPY_FORWARD_MARGIN }), 101);
  assert.equal(copyForwardBelow({ ...extent, fill: 1 }), 201, 'a quarter of a full log');
  assert.equal(copyForwardBelow({ ...extent, fill: 0.8 }), 126, 'room for a fifth: a sixteenth of what is written');
  assert.equal(copyForwardBelow({ firstSeq: 501, lastSeq: 500, fill: 0 }), 501, 'nothing is stored');
});

test('open tasks outlive a log that others fill three times, and lose no fact [S4-44]', { timeout: 120_000 }, async () => {
  const log = createMemoryLog({ shards: 2, factsBytesMax: BYTES_MAX });
  const relay = await relayOn(log.another(), 24 * HOUR_MS);
  const open = { waiting: WAITS, working: WORKS };
  for (const [taskId, status] of Object.entries(open)) {
    await sendMessage(log, taskId);
    await appendAgent(log, taskId, [status]);
    await storedWhen(log, ({ aggregate }) => aggregate.state === status.state, taskId);
  }
  const before = { waiting: await factsOf(log, 'waiting'), working: await factsOf(log, 'working') };
  for (let time = 1; time <= 3; time++) {
    await fill(log, `filler-${time}`, BYTES_MAX, Object.keys(open));
    for (const taskId of ['waiting', 'working'] as const) assert.deepEqual(await factsOf(log, taskId), before[taskId]);
  }
  assert.ok((await log.facts.extent()).firstSeq > 100, 'the log has discarded its oldest records');
  assert.equal((await log.facts.last('working'))?.record.aggregate.state, 'TASK_STATE_WORKING');
  await relay.stop();
});

test('a working task that stays silent between two copies by age fails instead of being copied forever', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog({ shards: 1, factsBytesMax: BYTES_MAX });
  const relay = await relayOn(log.another(), 1_000);
  await sendMessage(log, 'silent');
  await appendAgent(log, 'silent', [WORKS]);
  await storedWhen(log, ({ aggregate }) => aggregate.state === WORKS.state, 'silent');
  const { record: end } = await storedWhen(log, ({ aggregate }) => isTerminal(aggregate.state), 'silent');
  const { metadata } = end.facts.findLast(fact => fact.kind === 'status.changed')!.event.statusUpdate;
  assert.deepEqual(metadata, { reason: WORKER_GONE, retryable: true });
  await relay.stop();
});

test('the index keeps open tasks while others fill it three times, so that their deadlines apply', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog({ shards: 1, tasksBytesMax: 16 * 1024 });
  const relay = await relayOn(log.another());
  await sendMessage(log, 'waiting');
  await appendAgent(log, 'waiting', [WAITS]);
  const key = listKeyOf('waiting', { role: 'agent.echo' }, log.layouts);
  const entryOf = async () => (await log.taskLists.get(key))!;
  await until(async () => (await log.tasks.get('waiting'))?.value.state === WAITS.state);
  const { value } = await entryOf();
  for (let filler = 1; (await log.taskLists.revision()) < 300; filler++) {
    await sendMessage(log, `filler-${filler}`);
    await appendAgent(log, `filler-${filler}`, [COMPLETED]);
    await storedWhen(log, ({ aggregate }) => isTerminal(aggregate.state), `filler-${filler}`);
    await until(async () => (await log.tasks.get(`filler-${filler}`)) !== undefined);
    await until(async () => (await entryOf()).revision >= copyForwardBelow(await log.taskLists.extent()));
  }
  assert.ok((await log.taskLists.extent()).firstSeq > 100, 'the index has removed its oldest entries');
  assert.deepEqual((await entryOf()).value, value);
  await relay.stop();
});

/**
 * Simulates an outage: a relay folds the beginning of a task, no relay runs while its agent continues, and then the agent's inputs are
 * removed.
 */
async function outage(log: MemoryLog, work: () => Promise<void>): Promise<void> {
  const first = await relayOn(log.another());
  await sendMessage(log, 't');
  await until(() => log.work.hasItem('agent.echo', 't'));
  await appendAgent(log, 't', [WORKS]);
  await storedWhen(log, ({ aggregate }) => aggregate.state === WORKS.state);
  await until(async () => (await log.tasks.get('t'))?.value.state === WORKS.state);
  await first.stop();
  await work();
  log.expireAll('inputs', (await log.inputs.extent()).lastSeq + 1);
}

/** Takes and settles the task's work item, as its agent would. */
async function finish(log: MemoryLog, write: () => Promise<void>): Promise<void> {
  const stop = new AbortController();
  await log.work.take('agent.echo', { slots: 1, signal: stop.signal }, async () => {
    await write();
    stop.abort();
  });
}

test('a task fails if its agent has finished and its last inputs were removed, although nothing is written afterwards', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  await outage(log, () => finish(log, () => appendAgent(log, 't', [COMPLETED], 2)));
  const second = await relayOn(log.another());
  const { facts } = (await storedWhen(log, ({ aggregate }) => isTerminal(aggregate.state))).record;
  const { status, metadata } = facts.findLast(fact => fact.kind === 'status.changed')!.event.statusUpdate;
  assert.deepEqual([status.state, metadata?.reason], ['TASK_STATE_FAILED', INPUTS_LOST]);
  await second.stop();
});

const LOST_ENTRIES = [
  { shown: WORKS, lost: COMPLETED },
  { shown: WAITS, lost: WORKS },
];
for (const { shown, lost } of LOST_ENTRIES) {
  const states = `${stateWord(lost.state)} after ${stateWord(shown.state)}`;
  test(`an index entry that was lost with its relay is written again although all inputs were removed: ${states}`, {
    timeout: 120_000,
  }, async () => {
    const log = createMemoryLog();
    const processLog = log.another();
    const first = await relayOn(processLog);
    await sendMessage(log, 't');
    await appendAgent(log, 't', [shown]);
    await until(async () => (await log.tasks.get('t'))?.value.state === shown.state);
    processLog.tasks.update = () => new Promise(() => {});
    await appendAgent(log, 't', [lost], 2);
    await storedWhen(log, ({ aggregate }) => aggregate.state === lost.state);
    await kill(processLog, first);
    log.expireAll('inputs', (await log.inputs.extent()).lastSeq + 1);
    assert.equal((await log.tasks.get('t'))?.value.state, shown.state);
    const second = await relayOn(log.another());
    await until(async () => (await log.tasks.get('t'))?.value.state === lost.state);
    await second.stop();
  });
}

test('a record without a fact does not hide that the work item is gone', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  await outage(log, () => finish(log, () => appendAgent(log, 't', [COMPLETED], 2)));
  const second = await relayOn(log.another());
  const again = { id: 'agent', agent: 'echo', turn: 1, attempt: 2 };
  const record = { v: 1, at: Date.now(), from: again, n: 1, inputs: [WORKS] } as const;
  await log.inputs.append('t', structuredClone(record) as unknown as InputRecord, { id: 't:agent:1:0:2:1' });
  const { aggregate } = (await storedWhen(log, ({ aggregate }) => isTerminal(aggregate.state))).record;
  assert.equal(aggregate.state, 'TASK_STATE_FAILED');
  await second.stop();
});

test('a silent task whose agent still has its work item is left alone, however much was removed', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  await outage(log, async () => {});
  const second = await relayOn(log.another());
  await new Promise(resolve => setTimeout(resolve, SILENT_MS * 3));
  await finish(log, () => appendAgent(log, 't', [COMPLETED], 2));
  const { aggregate } = (await storedWhen(log, ({ aggregate }) => isTerminal(aggregate.state))).record;
  assert.equal(aggregate.state, 'TASK_STATE_COMPLETED');
  await second.stop();
});

const FULL = { firstSeq: 1, lastSeq: 10_000, fill: 1 };

/** One sweep over index entries at a fixed time. Resolves with the appended inputs, and the numbers of rewritten entries and read tasks. */
async function sweepOver(
  log: MemoryLog,
  tasks: [string, OpenTask][],
  nowMs: number,
  { facts = FULL, isBusy = false }: { facts?: StreamExtent; isBusy?: boolean } = {},
): Promise<{ inputs: string[]; written: number; examined: number }> {
  const inputs: string[] = [];
  let written = 0;
  let examined = 0;
  let sweeps = 0;
  const swept = Promise.withResolvers<void>();
  const ofLog = (extent: StreamExtent) => toLogExtent([extent], log.layouts);
  const extents = { facts: ofLog(facts), tasks: FULL, inputs: ofLog({ ...FULL, firstSeq: 9_000 }) };
  const sweep = new RetentionSweep({
    log: {
      facts: {
        ...log.facts,
        last: taskId => {
          examined += 1;
          return log.facts.last(taskId);
        },
        extent: async () => {
          // A sweep begins when the previous one has ended.
          if (++sweeps > 1) swept.resolve();
          return sweeps > 1 ? ofLog({ ...FULL, fill: 0 }) : extents.facts;
        },
      },
      taskLists: { ...log.taskLists, extent: async () => extents.tasks },
      inputs: {
        ...log.inputs,
        extent: async () => extents.inputs,
        append: async (_taskId, _record, { id }) => ({ seq: inputs.push(id), duplicate: false }),
      },
      work: log.work,
    },
    index: new IndexWrites(log.tasks),
    tasks: {
      get open() {
        return new Map(sweeps > 0 ? tasks.slice(0, 1) : tasks);
      },
      rewrite: async () => {
        written += 1;
      },
    },
    owns: () => true,
    isBusy: () => isBusy,
    copyForwardAfterMs: HOUR_MS,
    now: () => nowMs,
    logger,
    sweepMs: 20,
  });
  await swept.promise;
  sweep.stop();
  return { inputs: [...inputs], written, examined };
}

function openTask(startSeq: number, more: Partial<OpenTask['entry']> = {}): OpenTask {
  const task = { contextId: 'c', role: 'agent.echo', state: 'TASK_STATE_INPUT_REQUIRED', generation: 2, at: 0 } as const;
  return { entry: { ...task, startSeq, startStoredAt: startSeq, ...more }, revision: startSeq };
}

test('one sweep copies at most COPIES_PER_SWEEP_MAX tasks, the oldest first, and writes at most ENTRIES_PER_SWEEP_MAX entries', async () => {
  const tasks = Array.from({ length: ENTRIES_PER_SWEEP_MAX + 1 }, (_, index): [string, OpenTask] => {
    const startSeq = ENTRIES_PER_SWEEP_MAX + 1 - index;
    return [`t${startSeq}`, openTask(startSeq)];
  });
  const { inputs, written } = await sweepOver(createMemoryLog(), tasks, 0);
  const oldest = Array.from({ length: COPIES_PER_SWEEP_MAX }, (_, index) => `t${index + 1}:copy-forward:${index + 1}`);
  assert.deepEqual(inputs, oldest);
  assert.equal(written, ENTRIES_PER_SWEEP_MAX);
});

test('a task whose beginning is gone is not copied, because the copy would present a part as the whole task', async () => {
  const facts = { ...FULL, firstSeq: 101 };
  const tasks: [string, OpenTask][] = [
    ['gone', openTask(100)],
    ['whole', openTask(101)],
  ];
  assert.deepEqual((await sweepOver(createMemoryLog(), tasks, 0, { facts })).inputs, ['whole:copy-forward:101']);
});

test('a sweep examines at most EXAMINED_PER_SWEEP_MAX tasks', async () => {
  const tasks = Array.from({ length: EXAMINED_PER_SWEEP_MAX + 1 }, (_, index): [string, OpenTask] => [
    `t${index}`,
    openTask(9_999),
  ]);
  assert.equal((await sweepOver(createMemoryLog(), tasks, SILENT_MS_MIN)).examined, EXAMINED_PER_SWEEP_MAX);
  assert.equal((await sweepOver(createMemoryLog(), tasks.slice(1), SILENT_MS_MIN)).examined, EXAMINED_PER_SWEEP_MAX);
});

test('a running task is examined once SILENT_MS_MIN has passed since its newest fact, not a millisecond earlier', async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log.another());
  await sendMessage(log, 't');
  await until(() => log.work.hasItem('agent.echo', 't'));
  await finish(log, async () => {});
  await until(async () => ((await log.tasks.get('t'))?.value.generation ?? 0) > 0);
  await relay.stop();
  const { value: entry } = (await log.tasks.get('t'))!;
  const tasks: [string, OpenTask][] = [['t', { entry: { ...entry, startSeq: 9_999 }, revision: 9_999 }]];
  const newestAt = (await log.facts.last('t'))!.record.aggregate.at;
  assert.deepEqual((await sweepOver(log, tasks, newestAt + SILENT_MS_MIN - 1)).inputs, []);
  const busy = await sweepOver(log, tasks, newestAt + SILENT_MS_MIN, { isBusy: true });
  assert.deepEqual(busy.inputs, [], 'its work may still wait for room in the queue');
  assert.deepEqual((await sweepOver(log, tasks, newestAt + SILENT_MS_MIN)).inputs, ['t:work-gone:1:']);
});
