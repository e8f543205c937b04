import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput, InputRecord } from '@hopline/events';
import { HistoryLost, type InputLog, type StoredInput } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { until, untilTick } from '../../../test/kit/until.ts';
import { CreationBudget } from './creation-budget.ts';
import { metricsOf, shardContext } from './shard.test-kit.ts';
import { ENDED_IDLE_MS, IDLE_MS, RELAY_WAITING_UNITS_MAX, Shard, type ShardContext, SWEEP_MS } from './shard.ts';
import { CHECK_OFTEN_MS, CHECK_OLD_MS } from './stored-records.ts';
import { UNKNOWN_TASKS_MAX } from './unknown-tasks.ts';

const message = (messageId: string): InputRecord => ({
  v: 1,
  at: 1,
  from: 'client',
  input: {
    kind: 'message',
    message: { messageId, role: 'ROLE_USER', parts: [{ text: 'hello' }] },
    contextId: 'c',
    role: 'agent.echo',
    profile: 'transparent',
  },
});
const MESSAGE = message('m');

function agent(n: number, state: 'TASK_STATE_WORKING' | 'TASK_STATE_COMPLETED'): InputRecord {
  const inputs: AgentInput[] = [{ kind: 'status', state }];
  return { v: 1, at: 1, from: { id: 'agent', agent: 'echo', turn: 1, item: 1, attempt: 1 }, n, inputs };
}

const shardOf = (log: MemoryLog, more?: Partial<ShardContext>) => new Shard(0, { checkpoint: 0 }, shardContext(log, more));

test('an ended task leaves memory after ENDED_IDLE_MS, an open one after IDLE_MS; later inputs of an ended task are still rejected', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const log = createMemoryLog({ shards: 1 });
  let [nowMs, ids] = [0, 0];
  const reasons: string[] = [];
  const shard = shardOf(log, { now: () => nowMs, metrics: metricsOf(reason => reasons.push(reason)) });
  shard.start();
  const append = (taskId: string, record: InputRecord) => log.inputs.append(taskId, record, { id: `i${++ids}` });
  const folded = async (taskId: string, foldedSeq: number) => {
    await untilTick(async () => ((await log.facts.last(taskId))?.record.aggregate.foldedSeq ?? 0) >= foldedSeq);
  };
  const sweepAt = (ms: number) => {
    nowMs = ms;
    t.mock.timers.tick(SWEEP_MS);
    return shard.taskCount;
  };
  try {
    await append('ends', MESSAGE);
    await append('ends', agent(1, 'TASK_STATE_WORKING'));
    const end = await append('ends', agent(2, 'TASK_STATE_COMPLETED'));
    await append('works', MESSAGE);
    const { seq } = await append('works', agent(1, 'TASK_STATE_WORKING'));
    await Promise.all([folded('ends', end.seq), folded('works', seq)]);
    await untilTick(() => shard.checkpoint >= seq);
    assert.equal(sweepAt(ENDED_IDLE_MS - 1), 2);
    assert.equal(sweepAt(ENDED_IDLE_MS), 1);
    const late = await append('ends', agent(3, 'TASK_STATE_WORKING'));
    await untilTick(() => shard.checkpoint >= late.seq);
    assert.deepEqual(reasons, ['terminal']);
    assert.equal(sweepAt(IDLE_MS - 1), 1, 'the ended task, read again, is gone; the open one is here');
    assert.equal(sweepAt(IDLE_MS), 0);
  } finally {
    await shard.stop();
  }
});

for (const [when, isSwept] of [
  ['before the first check', false],
  ['after a check', true],
] as const) {
  test(`a loss ${when} is noticed within SWEEP_MS, even if another task continues past the lost sequences`, async t => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const log = createMemoryLog({ shards: 1 });
    const failures: unknown[] = [];
    let [nowMs, ids] = [0, 0];
    const shard = shardOf(log, { now: () => nowMs, onFailure: error => void failures.push(error) });
    shard.start();
    const stores = async (taskId: string, record: InputRecord) => {
      const { seq } = await log.inputs.append(taskId, record, { id: `i${++ids}` });
      await untilTick(
        async () => ((await log.facts.last(taskId))?.record.aggregate.foldedSeq ?? 0) >= seq && shard.checkpoint >= seq,
      );
    };
    const sweep = async () => {
      nowMs += SWEEP_MS;
      t.mock.timers.tick(SWEEP_MS);
      for (let n = 0; n < 5; n += 1) await new Promise(setImmediate);
    };
    try {
      await stores('busy', MESSAGE);
      const { lastSeq } = await log.facts.extent();
      await stores('quiet', MESSAGE);
      const lost = (await log.facts.extent()).lastSeq;
      for (let n = 0; isSwept && n < 4; n += 1) await sweep();
      log.loseFacts(lastSeq);
      await untilTick(async () => {
        await stores('busy', message(`m${++ids}`));
        return (await log.facts.extent()).lastSeq > lost;
      });
      assert.equal(failures.length, 0);
      await sweep();
      assert.ok(failures[0] instanceof HistoryLost);
      // The shard that starts again must detect the same loss.
      const lostMarks = await Promise.all(shard.progress.unproven!.map(mark => log.facts.isLost(mark)));
      assert.ok(lostMarks.includes(true));
    } finally {
      await shard.stop();
    }
  });
}

test('a shard checks its newest record with each sweep, and only every CHECK_OLD_MS once it is old', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const log = createMemoryLog({ shards: 1 });
  let [nowMs, looks] = [0, 0];
  const isLost = log.facts.isLost.bind(log.facts);
  log.facts.isLost = mark => {
    looks += 1;
    return isLost(mark);
  };
  const shard = shardOf(log, { now: () => nowMs });
  shard.start();
  const looksAt = async (ms: number) => {
    [nowMs, looks] = [ms, 0];
    t.mock.timers.tick(SWEEP_MS);
    for (let n = 0; n < 5; n += 1) await new Promise(setImmediate);
    return looks > 0;
  };
  const store = async (taskId: string) => {
    const { seq } = await log.inputs.append(taskId, MESSAGE, { id: taskId });
    await untilTick(async () => shard.checkpoint >= seq && (await log.facts.last(taskId)) !== undefined);
  };
  try {
    await store('first');
    assert.equal(await looksAt(SWEEP_MS), true);
    // The task leaves memory, so its record is looked for once more.
    await looksAt(IDLE_MS);
    const oldMs = CHECK_OFTEN_MS;
    assert.equal(await looksAt(oldMs - 2), true);
    assert.equal(await looksAt(oldMs - 1), true);
    assert.equal(await looksAt(oldMs + SWEEP_MS), false);
    assert.equal(await looksAt(oldMs - 1 + CHECK_OLD_MS), true);
    assert.equal(await looksAt(oldMs + CHECK_OLD_MS), false);
    await store('second');
    assert.equal(await looksAt(oldMs + CHECK_OLD_MS + 1), true);
    assert.equal(await looksAt(oldMs + CHECK_OLD_MS + 2), true);
  } finally {
    await shard.stop();
  }
});

test('a loss is noticed if the log has another record than the index names, or none, and the inputs are then read again', async () => {
  for (const isReused of [false, true]) {
    const log = createMemoryLog({ shards: 1 });
    if (isReused) log.garbage('facts', 'other');
    const failures: unknown[] = [];
    const context: Partial<ShardContext> = { indexedSeq: async () => 1, onFailure: error => void failures.push(error) };
    const before = shardOf(log, context);
    before.start();
    const { seq } = await log.inputs.append('gone', MESSAGE, { id: 'i1' });
    await log.inputs.append('gone', agent(1, 'TASK_STATE_WORKING'), { id: 'i2' });
    await untilTick(() => failures.length > 0);
    assert.ok(failures[0] instanceof HistoryLost);
    await before.stop();
    const shard = new Shard(0, { ...before.progress, checkpoint: seq }, shardContext(log, context));
    shard.start();
    try {
      await untilTick(async () => (await log.facts.last('gone'))?.record.aggregate.state === 'TASK_STATE_WORKING');
      assert.equal(failures.length, 1);
    } finally {
      await shard.stop();
    }
  }
});

test('while an append is pending, a shard reads no more than its limit, even with large records, and knows the age of its oldest input', async t => {
  const log = createMemoryLog({ shards: 1 });
  const { append } = log.facts;
  const release = Promise.withResolvers<void>();
  log.facts.append = async (...args) => {
    await release.promise;
    return append.apply(log.facts, args);
  };
  const { readShard } = log.inputs;
  let bytesRead = 0;
  log.inputs.readShard = async function* (...args) {
    for await (const input of readShard.apply(log.inputs, args)) {
      bytesRead += input.bytes;
      yield input;
    }
  };
  const recordBytes = 512 * 1024;
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const startedAt = Date.now();
  const records = (2 * RELAY_WAITING_UNITS_MAX) / recordBytes;
  await log.inputs.append('t', MESSAGE, { id: 'm' });
  for (let n = 1; n <= records; n += 1) {
    const parts = [{ text: 'x'.repeat(recordBytes) }];
    const input: AgentInput = { kind: 'artifact', lane: `${n}`, artifact: { name: 'file' }, parts, append: false, last: true };
    const from = { id: 'agent', agent: 'echo', turn: 1, item: 1, attempt: 1 };
    await log.inputs.append('t', { v: 1, at: 1, from, n, inputs: [input] }, { id: `${n}` });
  }
  const shard = shardOf(log);
  shard.start();
  try {
    await until(
      () => bytesRead >= RELAY_WAITING_UNITS_MAX,
      () => `${bytesRead} bytes are read`,
    );
    for (let before = -1; bytesRead > before; ) {
      before = bytesRead;
      await new Promise(resolve => setTimeout(resolve, 50));
    }
    assert.ok(bytesRead <= RELAY_WAITING_UNITS_MAX + 2 * 1024 * 1024, `${bytesRead} bytes`);
    assert.ok(shard.oldestInputAt! >= startedAt && shard.oldestInputAt! < startedAt + 1_000, 'the oldest input waits');
    release.resolve();
    await untilTick(() => shard.checkpoint >= records + 1);
    assert.equal(shard.oldestInputAt, undefined);
  } finally {
    release.resolve();
    await shard.stop();
  }
});

test('the oldest input is the first stored input of any task that is not folded', async () => {
  const log = createMemoryLog({ shards: 1 });
  const effects = new Map(['first', 'second'].map(taskId => [taskId, Promise.withResolvers<void>()]));
  const shard = shardOf(log, { applySideEffects: ({ aggregate }) => effects.get(aggregate.taskId)?.promise });
  shard.start();
  try {
    const times: number[] = [];
    for (const taskId of effects.keys()) {
      await log.inputs.append(taskId, MESSAGE, { id: taskId });
      for await (const { storedAt } of log.inputs.read(taskId)) times.push(storedAt);
      await untilTick(async () => (await log.facts.last(taskId)) !== undefined);
      await untilTick(() => Date.now() > times.at(-1)!);
    }
    assert.equal(shard.oldestInputAt, times[0]);
    effects.get('first')!.resolve();
    await untilTick(() => shard.lag === 1);
    assert.equal(shard.oldestInputAt, times[1]);
    effects.get('second')!.resolve();
    await untilTick(() => shard.lag === 0);
    assert.equal(shard.oldestInputAt, undefined);
  } finally {
    await shard.stop();
  }
});

test('a task whose work waits for room in the queue stays in memory, because only its relay requests that work', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const log = createMemoryLog({ shards: 1 });
  let nowMs = 0;
  const room = Promise.withResolvers<void>();
  const shard = shardOf(log, { now: () => nowMs, applySideEffects: () => room.promise });
  const tasksAt = (ms: number) => {
    nowMs = ms;
    t.mock.timers.tick(SWEEP_MS);
    return shard.taskCount;
  };
  shard.start();
  try {
    const { seq } = await log.inputs.append('t', MESSAGE, { id: 'i1' });
    await untilTick(async () => (await log.facts.last('t')) !== undefined);
    assert.equal(tasksAt(2 * IDLE_MS), 1);
    assert.equal(shard.checkpoint, seq - 1, 'the next owner would request the work');
    room.resolve();
    await untilTick(() => shard.checkpoint >= seq);
    assert.equal(tasksAt(4 * IDLE_MS), 0);
  } finally {
    await shard.stop();
  }
});

test('tasks that an agent names and that are not open are looked for one after another; beyond 1,024 they are rejected, and a question waits for none', async () => {
  const log = createMemoryLog({ shards: 1 });
  const more = 6;
  const answer = Promise.withResolvers<void>();
  let looks = 0;
  const faults: string[] = [];
  const reasons: string[] = [];
  const shard = shardOf(log, {
    mayBeOpen: taskId => !taskId.startsWith('unknown'),
    indexedSeq: async taskId => {
      if (!taskId.startsWith('unknown')) return undefined;
      looks += 1;
      await answer.promise;
    },
    metrics: metricsOf(reason => reasons.push(reason)),
    onRejectedRecord: ({ fault, writer }) => faults.push(`${fault} of ${writer}`),
  });
  shard.start();
  try {
    for (let n = 0; n < UNKNOWN_TASKS_MAX + more; n += 1)
      await log.inputs.append(`unknown-${n}`, agent(1, 'TASK_STATE_WORKING'), { id: `i${n}` });
    const { seq } = await log.inputs.append('question', MESSAGE, { id: 'question' });
    await until(async () => (await log.facts.last('question')) !== undefined);
    assert.equal(looks, 1);
    assert.deepEqual(faults, Array(more).fill('too many unknown tasks of agent.echo'));
    answer.resolve();
    await until(() => shard.checkpoint >= seq);
    assert.equal(looks, UNKNOWN_TASKS_MAX);
    assert.deepEqual(reasons, Array(UNKNOWN_TASKS_MAX).fill('unknown_task'));
  } finally {
    answer.resolve();
    await shard.stop();
  }
});

test('until the open tasks of a shard have been read, every task may be one; then the waiting ones are looked for one after another', async () => {
  const log = createMemoryLog({ shards: 1 });
  const more = 6;
  const [first, others] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let [looks, isRead] = [0, false];
  const faults: string[] = [];
  const shard = shardOf(log, {
    mayBeOpen: taskId => !isRead || taskId === 'open',
    indexedSeq: async taskId => {
      if (taskId === 'question') return undefined;
      looks += 1;
      await (looks === 1 ? first : others).promise;
    },
    metrics: metricsOf(() => {}),
    onRejectedRecord: ({ fault }) => faults.push(fault),
  });
  shard.start();
  try {
    const count = UNKNOWN_TASKS_MAX + more;
    for (let n = 0; n < count; n += 1) await log.inputs.append(`unknown-${n}`, agent(1, 'TASK_STATE_WORKING'), { id: `i${n}` });
    await log.inputs.append('question', MESSAGE, { id: 'question' });
    const { seq } = await log.inputs.append('open', agent(1, 'TASK_STATE_WORKING'), { id: 'open' });
    await until(async () => (await log.facts.last('question')) !== undefined);
    await until(() => shard.taskCount === count + 2);
    assert.equal(looks, 1, 'the test kit has one slot for them');
    isRead = true;
    first.resolve();
    // All but the first one, which was loaded, and those that wait.
    await until(() => faults.length === more - 1);
    others.resolve();
    await until(() => shard.checkpoint >= seq);
    assert.equal(looks, 1 + UNKNOWN_TASKS_MAX + 1);
    assert.deepEqual(faults, Array(more - 1).fill('too many unknown tasks'));
  } finally {
    first.resolve();
    others.resolve();
    await shard.stop();
  }
});

test('messages with which an agent begins more tasks of its own than its budget has are rejected; those of clients are not limited', async () => {
  const log = createMemoryLog({ shards: 1 });
  const [atOnce, more] = [8, 3];
  const faults: string[] = [];
  const { inputs } = log;
  // Messages of clients pass ingress. Those that the server of an agent appends are stored as its own, in this test all at the same time.
  const asStored = (input: StoredInput): StoredInput =>
    input.taskId.startsWith('own') ? { ...input, writer: 'agent.echo', storedAt: 1 } : input;
  const ofAgent = {
    extent: () => inputs.extent(),
    unread: (shard: number, after: number) => inputs.unread(shard, after),
    async *readShard(...args: Parameters<InputLog['readShard']>) {
      for await (const input of inputs.readShard(...args)) yield asStored(input);
    },
  } as Partial<InputLog> as InputLog;
  const shard = shardOf(log, {
    inputs: ofAgent,
    creations: new CreationBudget(atOnce),
    onRejectedRecord: ({ fault, writer }) => faults.push(`${fault} of ${writer}`),
  });
  shard.start();
  try {
    for (let n = 0; n < atOnce + more; n += 1) await inputs.append(`own-${n}`, message(`m${n}`), { id: `i${n}` });
    const { seq } = await inputs.append('client', message('c'), { id: 'c' });
    await until(() => shard.checkpoint >= seq);
    assert.deepEqual(faults, Array(more).fill('too many tasks of agent.echo'));
    for (const taskId of ['own-0', `own-${atOnce - 1}`, 'client']) assert.ok(await log.facts.last(taskId), taskId);
    assert.equal(await log.facts.last(`own-${atOnce}`), undefined);
  } finally {
    await shard.stop();
  }
});
