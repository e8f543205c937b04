import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isTerminal, type TaskState } from '@hopline/a2a';
import type { AgentInput, FactRecord } from '@hopline/events';
import { LogUnavailable, type TaskIndexEntry } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { countingMetrics } from '../../../test/kit/counting-metrics.ts';
import { until } from '../../../test/kit/until.ts';
import { kill, logger, relayOn as relayWith, sendMessage, storedWhen, write, writerOf } from './relay.test-kit.ts';
import type { Relay } from './relay.ts';
import { CHECK_MS_MAX, inputTimeout, oldestStart, TaskDeadlines } from './task-deadlines.ts';

const TIMEOUT_MS = 400;
/** A deadline that does not pass during the test, however slow the machine is. */
const FAR_MS = 60_000;
const QUESTION = { messageId: 'q', role: 'ROLE_AGENT' as const, parts: [{ text: 'Which one?' }] };

type Count = { name: string; n: number; reason: string | undefined };

function relayOn(
  log: MemoryLog,
  inputTimeoutMs: number | undefined,
  counts: Count[] = [],
  authTimeoutMs?: number,
): Promise<Relay> {
  const metrics = countingMetrics((name, n, { reason, state }) => void counts.push({ name, n, reason: reason ?? state }));
  return relayWith(log, { metrics, inputTimeoutMs, authTimeoutMs });
}

async function appendAgent(log: MemoryLog, taskId: string, turn: number, ...inputs: AgentInput[]): Promise<void> {
  await write(writerOf(log, { taskId, turn }), ...inputs);
}

/** Starts a task and resolves when its input-required status is stored. */
async function startInputRequired(log: MemoryLog, taskId: string): Promise<FactRecord> {
  await sendMessage(log, taskId, { messageId: 'm1' });
  await appendAgent(log, taskId, 1, { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED', message: QUESTION });
  return reached(log, taskId, ({ aggregate }) => aggregate.state === 'TASK_STATE_INPUT_REQUIRED');
}

const reached = async (log: MemoryLog, taskId: string, met: (record: FactRecord) => boolean): Promise<FactRecord> =>
  (await storedWhen(log, met, taskId)).record;

const failed = (log: MemoryLog, taskId: string) =>
  reached(log, taskId, ({ aggregate }) => aggregate.state === 'TASK_STATE_FAILED');

async function waitForIndex(
  log: MemoryLog,
  taskId: string,
  request: 'inputRequest' | 'authRequest' = 'inputRequest',
): Promise<void> {
  await until(async () => (await log.tasks.get(taskId))?.value[request]);
}

/** The index follows the facts within milliseconds. */
async function waitForState(log: MemoryLog, taskId: string, state: TaskState): Promise<void> {
  await until(async () => (await log.tasks.get(taskId))?.value.state === state);
}

test('a task whose client does not answer fails at its deadline, not before [S3-8]', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log, TIMEOUT_MS);
  const { aggregate } = await startInputRequired(log, 't1');
  const { facts } = await failed(log, 't1');
  const [end] = facts;
  assert.ok(end?.kind === 'status.changed' && end.at - aggregate.inputRequest!.at >= TIMEOUT_MS);
  assert.deepEqual(end.event.statusUpdate.metadata, { reason: 'input timeout', retryable: true });
  await waitForState(log, 't1', 'TASK_STATE_FAILED');
  await relay.stop();
});

test('a deadline outlives every relay: a relay that starts after it fails the task [S3-8]', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const processLog = log.another();
  const dead = await relayOn(processLog, FAR_MS);
  const { aggregate } = await startInputRequired(log, 't1');
  await waitForIndex(log, 't1');
  await kill(processLog, dead);
  await new Promise(resolve => setTimeout(resolve, TIMEOUT_MS));
  assert.equal((await log.facts.last('t1'))?.record.aggregate.state, 'TASK_STATE_INPUT_REQUIRED');
  const relay = await relayOn(log.another(), TIMEOUT_MS);
  const { facts } = await failed(log, 't1');
  assert.ok(facts[0]!.at - aggregate.inputRequest!.at >= TIMEOUT_MS);
  await relay.stop();
});

test('an answer stored before the deadline wins even if no relay ran until after the deadline [S3-8]', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const first = await relayOn(log.another(), FAR_MS);
  await startInputRequired(log, 't1');
  await waitForIndex(log, 't1');
  await first.stop();
  await sendMessage(log, 't1', { messageId: 'm2' });
  await new Promise(resolve => setTimeout(resolve, TIMEOUT_MS));
  const relay = await relayOn(log.another(), TIMEOUT_MS);
  await reached(log, 't1', ({ aggregate }) => aggregate.turn === 2);
  await appendAgent(log, 't1', 2, { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  const { aggregate } = await reached(log, 't1', record => isTerminal(record.aggregate.state));
  assert.equal(aggregate.state, 'TASK_STATE_COMPLETED');
  await relay.stop();
});

test('without the setting a task waits without limit, even across relays [S4-13]', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const first = await relayOn(log.another(), undefined);
  await startInputRequired(log, 't1');
  await first.stop();
  const second = await relayOn(log.another(), undefined);
  await new Promise(resolve => setTimeout(resolve, TIMEOUT_MS * 2));
  assert.equal((await log.facts.last('t1'))?.record.aggregate.state, 'TASK_STATE_INPUT_REQUIRED');
  await sendMessage(log, 't1', { messageId: 'm2' });
  await reached(log, 't1', ({ aggregate }) => aggregate.turn === 2 && aggregate.state === 'TASK_STATE_WORKING');
  await second.stop();
});

/** Starts a task and resolves when its auth-required status is stored. */
async function startAuthRequired(log: MemoryLog, taskId: string): Promise<FactRecord> {
  await sendMessage(log, taskId, { messageId: 'm1' });
  await appendAgent(log, taskId, 1, { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message: QUESTION });
  return reached(log, taskId, ({ aggregate }) => aggregate.state === 'TASK_STATE_AUTH_REQUIRED');
}

test('a task that gets no credentials fails at its deadline, not before, and after the death of its relay', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const processLog = log.another();
  const dead = await relayOn(processLog, undefined, [], FAR_MS);
  const { aggregate } = await startAuthRequired(log, 't1');
  await waitForIndex(log, 't1', 'authRequest');
  await kill(processLog, dead);
  await new Promise(resolve => setTimeout(resolve, TIMEOUT_MS));
  assert.equal((await log.facts.last('t1'))?.record.aggregate.state, 'TASK_STATE_AUTH_REQUIRED');
  const relay = await relayOn(log.another(), undefined, [], TIMEOUT_MS);
  const [end] = (await failed(log, 't1')).facts;
  assert.ok(end?.kind === 'status.changed' && end.at - aggregate.authRequest!.at >= TIMEOUT_MS);
  assert.deepEqual(end.event.statusUpdate.metadata, { reason: 'auth timeout', retryable: true });
  await waitForState(log, 't1', 'TASK_STATE_FAILED');
  assert.equal((await log.tasks.get('t1'))?.value.authRequest, undefined);
  await relay.stop();
});

test('a task that receives credentials in time continues; the input timeout does not apply to auth-required', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const first = await relayOn(log.another(), TIMEOUT_MS, [], FAR_MS);
  await startAuthRequired(log, 'came');
  await startAuthRequired(log, 'never');
  await new Promise(resolve => setTimeout(resolve, 2 * TIMEOUT_MS));
  for (const taskId of ['came', 'never']) {
    assert.equal(
      (await log.facts.last(taskId))?.record.aggregate.state,
      'TASK_STATE_AUTH_REQUIRED',
      'the input timeout does not apply',
    );
  }
  const from = { id: 'agent', agent: 'echo', turn: 1, attempt: 1 };
  const working = {
    v: 1 as const,
    at: Date.now(),
    from,
    n: 2,
    inputs: [{ kind: 'status', state: 'TASK_STATE_WORKING' } as const],
  };
  await log.inputs.append('came', working, { id: 'working' });
  await waitForState(log, 'came', 'TASK_STATE_WORKING');
  await first.stop();
  const relay = await relayOn(log.another(), TIMEOUT_MS, [], 4 * TIMEOUT_MS);
  const { facts } = await failed(log, 'never');
  assert.equal((await log.facts.last('came'))?.record.aggregate.state, 'TASK_STATE_WORKING');
  const { aggregate } = (await log.facts.last('never'))!.record;
  assert.ok(facts[0]!.at - aggregate.authRequest!.at >= 4 * TIMEOUT_MS);
  await relay.stop();
});

test('a new relay writes the index entry that its predecessor did not', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const processLog = log.another();
  processLog.tasks.create = () => new Promise(() => {});
  const dead = await relayOn(processLog, undefined);
  await startInputRequired(log, 't1');
  await kill(processLog, dead);
  assert.equal(await log.tasks.get('t1'), undefined);
  const relay = await relayOn(log.another(), TIMEOUT_MS);
  await failed(log, 't1');
  await relay.stop();
});

test('a new relay writes the index entry of a status whose record begins with half a character', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog({ shards: 1 });
  const processLog = log.another();
  const dead = await relayOn(processLog, undefined);
  await sendMessage(log, 't1', { messageId: 'm1' });
  await appendAgent(log, 't1', 1, { kind: 'open', lane: 'a', artifact: {} });
  await until(async () => {
    const [lease] = await log.leases.match(['shard.0']);
    return (lease?.value.checkpoint ?? 0) >= 2;
  });
  processLog.tasks.update = () => new Promise(() => {});
  const from = { id: 'agent', agent: 'echo', turn: 1, attempt: 1 };
  const status = { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message: QUESTION } as const;
  const inputs: AgentInput[] = [{ kind: 'text', lane: 'a', tokens: ['\ud83c'] }, status];
  await log.inputs.append('t1', { v: 1, at: Date.now(), from, n: 2, inputs }, { id: 'asks' });
  await reached(log, 't1', ({ aggregate }) => aggregate.state === 'TASK_STATE_AUTH_REQUIRED');
  await kill(processLog, dead);
  const relay = await relayOn(log.another(), undefined, [], TIMEOUT_MS);
  await failed(log, 't1');
  await relay.stop();
});

test('inputs after the end of a task are rejected and counted with their reason [S3-6]', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const counts: Count[] = [];
  const relay = await relayOn(log, undefined, counts);
  await sendMessage(log, 't1', { messageId: 'm1' });
  await appendAgent(log, 't1', 1, { kind: 'open', lane: 'a', artifact: {} }, { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  await reached(log, 't1', ({ aggregate }) => aggregate.state === 'TASK_STATE_COMPLETED');
  const before = await log.facts.last('t1');
  const from = { id: 'agent', agent: 'echo', turn: 1, attempt: 2 };
  const late: AgentInput[] = [
    { kind: 'open', lane: 'a', artifact: {} },
    { kind: 'text', lane: 'a', tokens: ['too', ' late'] },
    { kind: 'status', state: 'TASK_STATE_FAILED' },
  ];
  await log.inputs.append('t1', { v: 1, at: Date.now(), from, n: 1, inputs: late }, { id: 'late' });
  await sendMessage(log, 't1', { messageId: 'm2' });
  const rejected = () => counts.filter(({ name, reason }) => name === 'inputsRejected' && reason === 'terminal');
  await until(() => rejected().reduce((sum, { n }) => sum + n, 0) >= 5);
  assert.equal(
    rejected().reduce((sum, { n }) => sum + n, 0),
    5,
    'an open, two tokens, a status, a message',
  );
  assert.equal((await log.facts.last('t1'))?.seq, before?.seq);
  assert.deepEqual(
    counts.filter(({ name }) => name === 'tasksEnded').map(({ reason }) => reason),
    ['completed'],
  );
  await relay.stop();
});

const WAITING_ENTRY: TaskIndexEntry = {
  contextId: 'c',
  role: 'agent.echo',
  state: 'TASK_STATE_INPUT_REQUIRED',
  startSeq: 1,
  generation: 2,
  at: 0,
  inputRequest: { n: 1, at: 0 },
};

test('a deadline that passes while the machine is suspended becomes due within CHECK_MS_MAX of its return [S3-8]', async t => {
  const log = createMemoryLog();
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  const deadlines = new TaskDeadlines({ log, rules: [inputTimeout(3 * 3_600_000)], owns: () => true, now: () => nowMs, logger });
  deadlines.update('t1', { entry: WAITING_ENTRY, revision: 1 });
  for (let step = 0; step < 10; step++) await new Promise(setImmediate);
  const appended = async () => {
    let count = 0;
    for await (const _input of log.inputs.read('t1')) count += 1;
    return count;
  };
  t.mock.timers.tick(CHECK_MS_MAX);
  await new Promise(setImmediate);
  assert.equal(await appended(), 0);
  nowMs = 4 * 3_600_000;
  t.mock.timers.tick(CHECK_MS_MAX);
  for (let step = 0; step < 10; step++) await new Promise(setImmediate);
  assert.equal(await appended(), 1);
  deadlines.stop();
});

test('a deadline that passes while the log is unavailable becomes due again until it is stored [S3-8]', async t => {
  const log = createMemoryLog();
  const { inputs } = log;
  let failures = 2;
  const append: typeof inputs.append = (...args) =>
    failures-- > 0 ? Promise.reject(new LogUnavailable('no leader')) : inputs.append(...args);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const away = { ...log, layouts: log.layouts, inputs: { ...inputs, append } };
  const deadlines = new TaskDeadlines({ log: away, rules: [inputTimeout(1_000)], owns: () => true, now: () => 2_000, logger });
  deadlines.update('t1', { entry: WAITING_ENTRY, revision: 1 });
  const appended = async () => {
    let count = 0;
    for await (const _input of inputs.read('t1')) count += 1;
    return count;
  };
  for (const expected of [0, 0, 1, 1]) {
    t.mock.timers.tick(CHECK_MS_MAX);
    for (let step = 0; step < 10; step++) await new Promise(setImmediate);
    assert.equal(await appended(), expected);
  }
  deadlines.stop();
});

test('the oldest start of an open task belongs to the task whose first record retention would reach first', () => {
  const task = (startStoredAt?: number) => ({
    entry: { state: 'TASK_STATE_WORKING', ...(startStoredAt !== undefined && { startStoredAt }) } as TaskIndexEntry,
    revision: 1,
  });
  assert.deepEqual(oldestStart(new Map()), []);
  const tasks = [task(2_000), task(1_000), task(), task(0)];
  assert.deepEqual(oldestStart(new Map(tasks.map((one, index) => [`${index}`, one]))), [1_000]);
});
