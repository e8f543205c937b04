import assert from 'node:assert/strict';
import { test } from 'node:test';
import { queryObjects } from 'node:v8';
import type { Producer } from '@hopline/events';
import { type Job, LogUnavailable, Requeued, Superseded } from '@hopline/log';
import { SUPERVISOR } from '@hopline/task';
import { NO_METRICS } from '../../../test/kit/no-metrics.ts';
import { until } from '../../../test/kit/until.ts';
import { AttemptFailed } from './attempt-failed.ts';
import { runTurn } from './run-turn.ts';
import { serveAgent } from './serve-agent.ts';
import { END_SHOWN_MS_MAX, requireShownEnd } from './shown-end.ts';
import { CALL, quiet, scripted, TaskLog, text } from './task-log.test-kit.ts';

const { signal } = new AbortController();
const ofAttempt = (attempt: number, item = 1): Producer => ({ id: CALL, agent: 'argocd', turn: 1, item, attempt });

/** The next append of the log is held, as on a frozen path, until the test releases it. */
function heldAppends(task: TaskLog) {
  const { inputs } = task.log;
  const held: (() => void)[] = [];
  let isFrozen = false;
  const append = async (...args: Parameters<typeof inputs.append>) => {
    if (isFrozen) await new Promise<void>(resolve => held.push(resolve));
    return await inputs.append(...args);
  };
  const log = { ...task.log, inputs: Object.assign(Object.create(inputs) as typeof inputs, { append }) };
  return {
    log,
    freeze: () => {
      isFrozen = true;
    },
    thaw: () => {
      isFrozen = false;
      for (const release of held.splice(0)) release();
    },
  };
}

/** Runs a turn to its stored end, which no relay has folded. */
async function storedEnd(mode: 'caipe' | 'direct', job: (task: TaskLog) => Job = task => task.job()) {
  const task = await TaskLog.create(mode);
  const agent = scripted([text('answer'), { type: 'done' }]);
  const outcome = await runTurn({ log: task.log, agent, name: 'argocd', logger: quiet, signal }, job(task));
  return { task, lastN: outcome.lastN! };
}

test('a superseded attempt whose last append is stored late does not complete the work item of the attempt that replaced it', {
  timeout: 120_000,
}, async t => {
  const task = await TaskLog.create('caipe', { ackWaitMs: 50 });
  const { log, freeze, thaw } = heldAppends(task);
  const attempts: number[] = [];
  const agent = scripted(async function* ({ attempt }) {
    attempts.push(attempt);
    yield text(`of attempt ${attempt}`);
    if (attempt === 1) freeze();
  });
  const stop = new AbortController();
  t.after(() => stop.abort());
  const options = {
    name: 'argocd',
    agent,
    url: 'http://a/',
    slots: 1,
    signal: stop.signal,
    logger: quiet,
    metrics: NO_METRICS,
    drainMs: 0,
  };
  void serveAgent({ ...options, log });
  await task.log.work.request('agent.argocd', task.job().work, { id: 'w1' });
  await until(() => attempts.length === 1);
  // Attempt 2 is delivered elsewhere, writes, and dies. Then the path of attempt 1 thaws, and the log accepts its end.
  await task.recordOf(ofAttempt(2));
  thaw();
  await until(async () => (await task.inputs()).some(input => input.kind === 'ended'));
  await until(() => attempts.length === 2);
  assert.equal(await task.log.work.hasItem('agent.argocd', task.taskId), true);
});

for (const mode of ['caipe', 'direct'] as const) {
  test(`${mode}: the item of a turn is done when the log shows the end of the turn, not when the end is stored`, async () => {
    const { task, lastN } = await storedEnd(mode);
    let isDone = false;
    const shown = requireShownEnd(task.log, task.job(), { lastN, signal }).then(() => {
      isDone = true;
    });
    await new Promise(resolve => setTimeout(resolve, 100));
    assert.equal(isDone, false, 'no relay has folded the end');
    await task.fold();
    await shown;
  });
}

test('an end that a relay has stored within 20 ms is confirmed by one read, without a subscription', async () => {
  const { task, lastN } = await storedEnd('caipe');
  await task.fold();
  let reads = 0;
  const facts = Object.assign(Object.create(task.log.facts) as typeof task.log.facts, {
    last: (taskId: string) => {
      reads += 1;
      return task.log.facts.last(taskId);
    },
    follow: () => assert.fail('followed'),
  });
  await requireShownEnd({ facts }, task.job(), { lastN, signal });
  assert.equal(reads, 1);
});

test('a turn has not ended if relays have shown only its beginning', async () => {
  const { task, lastN } = await storedEnd('caipe');
  assert.ok(lastN > 1);
  await task.recordOf(ofAttempt(1));
  await assert.rejects(requireShownEnd(task.log, task.job(), { lastN, signal, waitMs: 50 }), AttemptFailed);
});

test('a turn ends when the fact of its last input is stored, not when the fact of the previous input is', async () => {
  const { task, lastN } = await storedEnd('caipe');
  await task.recordOf(ofAttempt(1));
  const { facts } = task.log;
  const shown = await facts.last(task.job().work.taskId);
  const wait = (n: number) => {
    const newest = structuredClone(shown!);
    newest.record.aggregate.producers[CALL]!.n = n;
    const follow = facts.follow.bind(facts);
    const log = { facts: { last: async () => newest, follow } as unknown as typeof facts };
    return requireShownEnd(log, task.job(), { lastN, signal, waitMs: 50 });
  };
  await assert.rejects(wait(lastN - 1), AttemptFailed);
  await wait(lastN);
});

test('a later attempt, another item, a later turn or the end of the task settles the item', async () => {
  const wait = ({ task, lastN }: Awaited<ReturnType<typeof storedEnd>>) =>
    requireShownEnd(task.log, task.job(), { lastN, signal });
  const superseded = await storedEnd('caipe');
  await superseded.task.recordOf(ofAttempt(2));
  await assert.rejects(wait(superseded), Superseded);

  const other = await storedEnd('caipe');
  await other.task.recordOf(ofAttempt(1, 2));
  await wait(other);

  const abandoned = await storedEnd('caipe');
  const end = { kind: 'ended', call: CALL, state: 'TASK_STATE_FAILED', reason: 'x', retryable: false } as const;
  await abandoned.task.input({ id: SUPERVISOR, agent: SUPERVISOR, turn: 1, attempt: 1 }, end).store();
  await wait(abandoned);

  const canceled = await storedEnd('caipe');
  await canceled.task.cancel().store();
  await wait(canceled);

  const continued = await storedEnd('direct');
  await continued.task.message('more', 'm2', 'agent.argocd', 'transparent').store();
  await wait(continued);
});

test('a turn ends when it leaves its wait for credentials to the next turn, although its task continues', async () => {
  for (const mode of ['caipe', 'direct'] as const) {
    const task = await TaskLog.create(mode);
    const stop = new AbortController();
    const agent = scripted(async function* () {
      yield {
        type: 'auth-required',
        message: { messageId: 'q', role: 'ROLE_AGENT', parts: [{ text: 'log in' }] },
        resume: {},
      };
      stop.abort();
      await new Promise(() => {});
    });
    const deps = { log: task.log, agent, name: 'argocd', logger: quiet, signal: stop.signal };
    const outcome = await runTurn(deps, task.job());
    assert.equal(outcome?.state, 'TASK_STATE_AUTH_REQUIRED');
    await task.fold();
    await requireShownEnd(task.log, task.job(), { lastN: outcome.lastN!, signal });
  }
});

test('an end that no relay shows is abandoned after END_SHOWN_MS_MAX, and at once if the process stops or the log fails', async t => {
  const { task, lastN } = await storedEnd('caipe');
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let isSettled = false;
  const abandoned = assert.rejects(requireShownEnd(task.log, task.job(), { lastN, signal }), AttemptFailed).finally(() => {
    isSettled = true;
  });
  const passes = async (ms: number) => {
    t.mock.timers.tick(ms);
    for (let turns = 0; turns < 20; turns += 1) await new Promise(resolve => setImmediate(resolve));
  };
  await passes(20);
  await passes(END_SHOWN_MS_MAX - 1);
  assert.equal(isSettled, false, 'one millisecond earlier it waits');
  await passes(1);
  await abandoned;
  t.mock.timers.reset();

  const stop = new AbortController();
  const stopped = assert.rejects(requireShownEnd(task.log, task.job(), { lastN, signal: stop.signal }), Requeued);
  stop.abort();
  await stopped;

  const last = async () => Promise.reject(new LogUnavailable('away'));
  const facts = Object.assign(Object.create(task.log.facts) as typeof task.log.facts, { last });
  await assert.rejects(requireShownEnd({ facts }, task.job(), { lastN, signal }), LogUnavailable);
});

test('a newer attempt without a fact is found by its item, which the older attempt does not touch', async t => {
  const { task, lastN } = await storedEnd('caipe');
  t.mock.timers.enable({ apis: ['setInterval'] });
  const answers = [() => Promise.reject(new LogUnavailable('away')), async () => false, async () => true];
  const job = { ...task.job(), isTakenOver: () => answers.shift()!() };
  const left = assert.rejects(requireShownEnd(task.log, job, { lastN, signal }), Superseded);
  while (answers.length > 0) {
    t.mock.timers.tick(10_000);
    await new Promise(resolve => setTimeout(resolve, 5));
  }
  await left;
});

test('an end that waits to be shown does not take a slot of its worker', { timeout: 120_000 }, async t => {
  const task = await TaskLog.create('caipe');
  const agent = scripted([text('answer'), { type: 'done' }]);
  const stop = new AbortController();
  t.after(() => stop.abort());
  const options = {
    name: 'argocd',
    agent,
    url: 'http://a/',
    slots: 1,
    signal: stop.signal,
    logger: quiet,
    metrics: NO_METRICS,
    drainMs: 0,
  };
  void serveAgent({ ...options, log: task.log });
  const { work } = task.job();
  await task.log.work.request('agent.argocd', work, { id: 'w1' });
  await task.log.work.request('agent.argocd', work, { id: 'w2' });
  const ends = async () => (await task.inputs()).filter(input => input.kind === 'ended').length;
  await until(async () => (await ends()) === 2);
  assert.equal(await task.log.work.hasItem('agent.argocd', task.taskId), true);
});

test('a turn whose end is shown leaves no timer behind', async () => {
  const aggregate = { state: 'TASK_STATE_COMPLETED', turn: 1, calls: {}, producers: {} };
  const log = { facts: { last: async () => ({ seq: 1, record: { aggregate } }) } } as unknown as TaskLog['log'];
  const job = { work: { taskId: 't', turn: 1 }, item: 1, attempt: 1 } as unknown as Job;
  // A timer of AbortSignal.timeout is kept, with its signal, until its time is over.
  const signals = () => queryObjects(AbortSignal, { format: 'count' });
  const before = signals();
  const turns = 50;
  await Promise.all(Array.from({ length: turns }, () => requireShownEnd(log, job, { lastN: 1, signal })));
  const left = signals() - before;
  assert.ok(left < turns / 2, `${turns} turns left ${left} signals`);
});
