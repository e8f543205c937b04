import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Requeued } from '@hopline/log';
import { until } from '../../../test/kit/until.ts';
import type { Agent, AgentEvent, Turn } from './agent.ts';
import { REMOTE_RUN_HOLD_MS } from './limits.ts';
import { CALL, message, run, scripted, TaskLog, text } from './task-log.test-kit.ts';

const RUN = { taskId: 'remote-1' };

type Script = (turn: Turn) => AsyncIterable<AgentEvent>;

/** An agent whose runs are on a server. `canceled` lists the runs canceled there. */
function remoteAgent(script: Script, onCancel: () => Promise<void> = async () => {}) {
  const canceled: unknown[] = [];
  const agent: Agent = {
    ...scripted(script),
    cancelRemoteRun: async run => {
      await onCancel();
      canceled.push(run);
    },
  };
  return { agent, canceled };
}

async function* beginning(turn: Turn, ...events: AgentEvent[]): AsyncGenerator<AgentEvent> {
  turn.remoteRunBegan?.(RUN);
  yield* events;
}

/** Attempt 1 begins a run and shows text, and then its process dies. */
async function deadAttempt(task: TaskLog, events: AgentEvent[] = [text('half')]): Promise<void> {
  const stop = new AbortController();
  const { agent } = remoteAgent(async function* (turn) {
    yield* beginning(turn, ...events);
    stop.abort();
  });
  await assert.rejects(run(task, agent, task.job(), stop.signal), Requeued);
  await task.fold();
}

const cancel = (task: TaskLog) => task.when({ kind: 'client', taskId: task.taskId, input: { kind: 'cancel' } }).store();

test('the state for canceling a run is stored in the record of the first text', async () => {
  const task = await TaskLog.create('caipe');
  await run(task, remoteAgent(turn => beginning(turn, text('a'), text('b'))).agent);
  const [first] = await task.records();
  assert.deepEqual(
    first?.inputs.map(({ kind }) => kind),
    ['remote-run', 'open', 'text', 'close', 'ended'],
  );
  await task.fold();
  const fact = task.facts.find(({ kind }) => kind === 'remote-run.started');
  assert.deepEqual(fact, { kind: 'remote-run.started', at: fact!.at, producer: CALL, attempt: 1, run: RUN });
});

test('the run of an agent that thinks first is stored before its first text', async () => {
  const task = await TaskLog.create('caipe');
  const thought = Promise.withResolvers<void>();
  const running = run(
    task,
    remoteAgent(async function* (turn) {
      yield* beginning(turn);
      await thought.promise;
    }).agent,
  );
  const startedMs = performance.now();
  await until(async () => (await task.records()).length > 0);
  assert.ok(performance.now() - startedMs >= REMOTE_RUN_HOLD_MS / 2);
  assert.deepEqual(await task.inputs(), [{ kind: 'remote-run', run: RUN }]);
  thought.resolve();
  await running;
});

test('the next attempt receives the text that clients see and the runs that may continue', async () => {
  const task = await TaskLog.create('caipe');
  await deadAttempt(task);
  let turn: Turn | undefined;
  await run(
    task,
    remoteAgent(async function* (given) {
      turn = given;
      yield text('whole');
    }).agent,
    task.job(2),
  );
  assert.deepEqual([turn?.remoteRuns, turn?.shownText], [[RUN], 'half']);
});

test('an item redelivered for a canceled task cancels the runs of its dead attempt', async () => {
  const task = await TaskLog.create('caipe');
  await deadAttempt(task);
  await cancel(task);
  const { agent, canceled } = remoteAgent(() => assert.fail('the task has ended'));
  assert.deepEqual(await run(task, agent, task.job(2)), { unneeded: 'ended' });
  assert.deepEqual(canceled, [RUN]);
});

test('an item that is redelivered after the agent has ended its turn does not cancel its run', async () => {
  const task = await TaskLog.create('caipe');
  await run(task, remoteAgent(turn => beginning(turn, text('whole'))).agent);
  await task.fold();
  const { agent, canceled } = remoteAgent(() => assert.fail('the call has ended'));
  await run(task, agent, task.job(2));
  assert.deepEqual(canceled, []);
});

const QUESTION: AgentEvent = {
  type: 'interrupted',
  state: 'TASK_STATE_INPUT_REQUIRED',
  message: message('Which one?'),
  resume: RUN,
};

for (const isAnswered of [false, true])
  test(`an attempt whose question was not accepted leaves the run that the next turn continues, ${isAnswered ? 'and has begun' : 'and cancels its own'}`, async () => {
    const task = await TaskLog.create('caipe');
    const asks = remoteAgent(turn => beginning(turn, QUESTION));
    const OTHER = { taskId: 'remote-2' };
    const late = remoteAgent(async function* (turn) {
      turn.remoteRunBegan?.(RUN);
      turn.remoteRunBegan?.(OTHER);
      yield text('late');
      // The first attempt, which was frozen, ends, and its end is accepted.
      await run(task, asks.agent);
      await task.fold();
      if (isAnswered) await task.message('this one', 'm2').store();
      yield { type: 'failed', reason: 'cut', retryable: false };
    });
    late.agent.continuesRun = (one, resume) => (one as typeof RUN).taskId === (resume as typeof RUN | undefined)?.taskId;
    await run(task, late.agent, task.job(2)).catch(error => {
      if (error.name !== 'Superseded') throw error;
    });
    assert.deepEqual([late.canceled, asks.canceled], [[OTHER], []]);
  });

test('after an unanswered cancel the item is redelivered; the last delivery settles it', async () => {
  const task = await TaskLog.create('caipe');
  await deadAttempt(task);
  await cancel(task);
  const away = async () => {
    throw new Error('unreachable');
  };
  const { agent } = remoteAgent(() => assert.fail('the task has ended'), away);
  await assert.rejects(run(task, agent, task.job(2)), { name: 'RemoteRunLeft' });
  assert.deepEqual(await run(task, agent, task.job(4, { exhausted: true })), { unneeded: 'ended' });
});

test('an item is done when the server has answered the cancel of a canceled task', async () => {
  const task = await TaskLog.create('caipe');
  const begun = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const { agent, canceled } = remoteAgent(
    async function* (turn) {
      yield* beginning(turn, text('half'));
      begun.resolve();
      await new Promise<void>(resolve => turn.signal.addEventListener('abort', () => resolve()));
    },
    () => answered.promise,
  );
  let isDone = false;
  const running = run(task, agent).then(() => {
    isDone = true;
  });
  await begun.promise;
  await cancel(task);
  await new Promise(resolve => setTimeout(resolve, 500));
  assert.equal(isDone, false);
  answered.resolve();
  await running;
  assert.deepEqual(canceled, [RUN]);
});

test('a turn that fails cancels its runs; one that waits for its client does not', async () => {
  const failing = await TaskLog.create('caipe');
  const failed = remoteAgent(turn => beginning(turn, { type: 'failed', reason: 'x', retryable: false }));
  await run(failing, failed.agent);
  assert.deepEqual(failed.canceled, [RUN]);
  const asking = await TaskLog.create('caipe');
  const message = { messageId: 'q', role: 'ROLE_AGENT' as const, parts: [{ text: '?' }] };
  const asked = remoteAgent(turn => beginning(turn, { type: 'interrupted', state: 'TASK_STATE_INPUT_REQUIRED', message }));
  await run(asking, asked.agent);
  assert.deepEqual(asked.canceled, []);
});

test('a run that waits for credentials is left to the next turn, and canceled with the task', async () => {
  const message = { messageId: 'q', role: 'ROLE_AGENT' as const, parts: [{ text: 'log in' }] };
  const waiting: AgentEvent[] = [text('half'), { type: 'auth-required', message }];
  for (const end of ['message', 'cancel'] as const) {
    const task = await TaskLog.create('caipe');
    const { agent } = remoteAgent(turn => beginning(turn, ...waiting));
    const stop = new AbortController();
    const dying = scripted(async function* (turn) {
      yield* agent.run(turn);
      // The process of the attempt dies, so that nothing more is written.
      await new Promise<void>(resolve => turn.signal.addEventListener('abort', () => resolve()));
    });
    const running = run(task, dying, task.job(), stop.signal).catch(() => {});
    await until(async () => (await task.inputs()).some(({ kind }) => kind === 'status'));
    await task.fold();
    if (end === 'cancel') await cancel(task);
    else await task.message('go on', 'm2').store();
    const next = remoteAgent(() => assert.fail('the turn is over'));
    await run(task, next.agent, task.job(2));
    assert.deepEqual(next.canceled, end === 'cancel' ? [RUN] : []);
    stop.abort();
    await running;
  }
});
