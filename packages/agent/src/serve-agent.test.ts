import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { AgentSkill } from '@hopline/a2a';
import { type AgentRegistration, ATTEMPTS_MAX_DEFAULT } from '@hopline/log';
import { createLogger, startTelemetry } from '@hopline/telemetry';
import { countingMetrics } from '../../../test/kit/counting-metrics.ts';
import { until } from '../../../test/kit/until.ts';
import type { Agent, Turn } from './agent.ts';
import { FAILED_TURNS_MIN } from './failed-turns.ts';
import { ENTRY_DESCRIPTION_CHARS_MAX, SKILLS_MAX } from './register-agent.ts';
import { type ServeAgentOptions, serveAgent } from './serve-agent.ts';
import { ANSWER, CALL, quiet, run, scripted, TaskLog } from './task-log.test-kit.ts';

const counted: string[] = [];
const metrics = countingMetrics((name, count) => void counted.push(`${name} ${count}`));

const skill = (id: string, more: Partial<AgentSkill> = {}): AgentSkill => ({
  id,
  name: id,
  description: id,
  tags: ['t'],
  ...more,
});

/** Serves until it is stopped. The end of the test also stops it, so that a failed test does not keep the process alive. */
function serve(t: TestContext, task: TaskLog, agent: Agent, options: Partial<ServeAgentOptions> = {}) {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const served = serveAgent({
    log: task.log,
    name: 'argocd',
    agent,
    url: 'http://a/',
    slots: 2,
    signal: stop.signal,
    logger: quiet,
    metrics,
    heartbeatMs: 10,
    ...options,
  });
  return { stop: () => stop.abort(), served };
}

/** The entry of the only instance. */
const registered = async ({ log }: TaskLog) => (await log.agents.under('argocd'))[0];

test('an agent is registered, sends heartbeats, and leaves', async t => {
  const task = await TaskLog.create('caipe');
  const agent = { ...scripted([]), skills: async () => [skill('own'), skill('both')] };
  const { stop, served } = serve(t, task, agent, { skills: [skill('both', { name: 'Configured' }), skill('more')] });
  await until(async () => ((await registered(task))?.value.skills.length ?? 0) === 3);
  const entry = (await registered(task))!.value;
  assert.equal(entry.url, 'http://a/');
  assert.deepEqual(entry.skills.map(({ id, name }) => `${id} ${name}`).sort(), ['both Configured', 'more more', 'own own']);
  await until(async () => (await registered(task))!.value.heartbeat > entry.heartbeat);
  stop();
  await served;
  assert.equal(await registered(task), undefined);
});

test('an agent that does not answer is registered with what is known, and its skills are requested again', async t => {
  const task = await TaskLog.create('caipe');
  let asked = 0;
  const agent = {
    ...scripted([]),
    skills: async () => {
      asked += 1;
      if (asked < 3) throw new Error('down');
      return [skill('late')];
    },
  };
  const registrations: number[] = [];
  const onRegistered = (entry: AgentRegistration) => registrations.push(entry.skills.length);
  const { stop, served } = serve(t, task, agent, { skills: [skill('known')], onRegistered });
  await until(() => registrations.includes(2));
  assert.equal(registrations[0], 1);
  stop();
  await served;
  assert.equal(asked, 3, 'after the first answer skills are not requested with every heartbeat');
});

test('the size of the registry entry is bounded', async t => {
  const task = await TaskLog.create('caipe');
  const skills = Array.from({ length: SKILLS_MAX + 1 }, (_, index) =>
    skill(`s${index}`, { description: 'x'.repeat(ENTRY_DESCRIPTION_CHARS_MAX + 1) }),
  );
  const { stop, served } = serve(t, task, { ...scripted([]), skills: async () => skills });
  await until(async () => ((await registered(task))?.value.skills.length ?? 0) > 0);
  const { value } = (await registered(task))!;
  stop();
  await served;
  assert.equal(value.skills.length, SKILLS_MAX);
  assert.ok(value.skills.every(one => one.description.length === ENTRY_DESCRIPTION_CHARS_MAX));
});

test('work of the role runs until its attempts are used up, and is then settled', async t => {
  const task = await TaskLog.create('caipe', { attemptsMax: 1 });
  counted.length = 0;
  const log = task.log.inputs;
  let refusals = 1;
  const inputs = Object.create(log, {
    append: {
      value: (...args: Parameters<typeof log.append>) => {
        refusals -= 1;
        return refusals >= 0 ? Promise.reject(new Error('away')) : log.append(...args);
      },
    },
  });
  const agent = scripted([{ type: 'text', text: 'a' }, { type: 'done' }]);
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const logger = createLogger({ service: 'sub-agent', instance: 'test', level: 'info', destination });
  const { stop, served } = serve(t, task, agent, { log: { ...task.log, inputs }, logger });
  await task.log.work.request('agent.argocd', task.job().work, { id: 'w1' });
  await until(async () => (await task.inputs()).some(input => input.kind === 'ended'));
  stop();
  await served;
  assert.deepEqual((await task.inputs()).at(-1), {
    kind: 'ended',
    call: CALL,
    state: 'TASK_STATE_FAILED',
    reason: 'attempts exhausted',
    retryable: true,
  });
  assert.ok(counted.includes('redeliveries 1') && counted.includes('deadLetters 1'));
  const ends = lines.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'turn ended');
  assert.deepEqual(
    ends.map(({ state, reason, code }) => [state, reason, code]),
    [['failed', 'attempts exhausted', 'attempts_exhausted']],
  );
  assert.equal(counted.filter(line => line === 'activeTasks 1').length, counted.filter(line => line === 'activeTasks -1').length);
});

test('the entry of an agent whose turns all fail has the cause', async t => {
  const task = await TaskLog.create('caipe');
  const failing = scripted([{ type: 'failed', reason: 'the server failed', retryable: false, cause: 'http_500' }]);
  const { stop, served } = serve(t, task, failing, { slots: FAILED_TURNS_MIN, drainMs: 1 });
  await until(async () => (await registered(task)) !== undefined);
  assert.equal((await registered(task))?.value.failing, undefined);
  for (let turn = 0; turn < FAILED_TURNS_MIN; turn += 1)
    await task.log.work.request('agent.argocd', task.job().work, { id: `w${turn}` });
  await until(async () => (await registered(task))?.value.failing === 'http_500');
  stop();
  await served;
});

test('the log line of a turn that its task no longer needed has the reason', async t => {
  const task = await TaskLog.create('caipe');
  await run(task, scripted([{ type: 'text', text: 'a' }, { type: 'done' }]));
  await task.fold();
  const lines: { msg: string; state?: string; reason?: string }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const logger = createLogger({ service: 'sub-agent', instance: 'test', level: 'info', destination });
  const { stop, served } = serve(t, task, scripted([{ type: 'done' }]), { logger });
  await task.log.work.request('agent.argocd', task.job().work, { id: 'w1' });
  await until(() => lines.some(({ msg }) => msg === 'turn ended'));
  stop();
  await served;
  const ended = lines.find(({ msg }) => msg === 'turn ended');
  assert.deepEqual([ended?.state, ended?.reason], ['unneeded', 'its task or its call had ended']);
});

test('the log line of a turn that is requeued has the code of its error', async t => {
  const task = await TaskLog.create('caipe');
  const lines: { msg: string; reason?: string; code?: string }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const logger = createLogger({ service: 'sub-agent', instance: 'test', level: 'info', destination });
  const failing = scripted([{ type: 'failed', reason: 'the server failed', retryable: true, cause: 'http_500' }]);
  const { stop, served } = serve(t, task, failing, { logger });
  await task.log.work.request('agent.argocd', task.job().work, { id: 'w1' });
  await until(() => lines.some(({ msg }) => msg === 'turn requeued'));
  stop();
  await served;
  const requeued = lines.find(({ msg }) => msg === 'turn requeued');
  assert.deepEqual([requeued?.reason, requeued?.code], ['retry', 'http_500']);
});

test('the time of a turn is counted for its tenant, and its lines name the tenant', async t => {
  const telemetry = await startTelemetry({ service: 'sub-agent', instance: 'test', version: '0', env: {} });
  t.after(() => telemetry.shutdown());
  const task = await TaskLog.create('caipe');
  const lines: { msg: string; tenant?: string }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const logger = createLogger({ service: 'sub-agent', instance: 'test', level: 'info', destination });
  const { stop, served } = serve(t, task, scripted([{ type: 'text', text: 'a' }, { type: 'done' }]), {
    metrics: telemetry.metrics,
    logger,
  });
  const work = { ...task.job().work, owner: { tenant: 'acme', subject: 'eva' } };
  await task.log.work.request('agent.argocd', work, { id: 'w1' });
  await until(async () => /tenant="acme"/.test(await telemetry.metricsText()));
  stop();
  await served;
  const [, seconds] = /^hopline_tenant_turn_time_seconds_total\{.*tenant="acme",agent="argocd"\} (\S+)$/m.exec(
    await telemetry.metricsText(),
  )!;
  assert.ok(Number(seconds) > 0);
  const ofTurn = lines.filter(({ msg }) => msg === 'turn taken' || msg === 'turn ended');
  assert.deepEqual([ofTurn.length > 0, ofTurn.every(({ tenant }) => tenant === 'acme')], [true, true]);
});

test('a stop gives the running turn time to end, then requeues it', async t => {
  const task = await TaskLog.create('caipe');
  let began = () => {};
  const running = new Promise<void>(resolve => {
    began = resolve;
  });
  const slow = scripted(async function* () {
    began();
    await new Promise(resolve => setTimeout(resolve, 60));
    yield { type: 'text', text: 'in time' };
  });
  const { stop, served } = serve(t, task, slow, { drainMs: 2_000 });
  await task.log.work.request('agent.argocd', task.job().work, { id: 'w1' });
  await running;
  stop();
  await until(async () => (await task.inputs()).some(input => input.kind === 'ended'));
  assert.equal((await task.fold()).textOf(ANSWER.name), 'in time');
  await served;

  const other = await TaskLog.create('caipe');
  let attempts = 0;
  const stuck = scripted(async function* (turn) {
    attempts = turn.attempt;
    began();
    if (turn.attempt === 1) await new Promise<void>(resolve => turn.signal.addEventListener('abort', () => resolve()));
    yield { type: 'text', text: 'by another' };
  });
  const first = new Promise<void>(resolve => {
    began = resolve;
  });
  const here = serve(t, other, stuck, { drainMs: 20 });
  await other.log.work.request('agent.argocd', other.job().work, { id: 'w1' });
  await first;
  here.stop();
  await here.served;
  const there = serve(t, other, stuck);
  await until(async () => (await other.inputs()).some(input => input.kind === 'ended'));
  assert.equal((await other.fold()).textOf(ANSWER.name), 'by another');
  there.stop();
  await there.served;
  assert.equal(attempts, 2);
});

test('a directly addressed agent gets the answer to its question and the history, even in another process [S4-13]', async t => {
  const task = await TaskLog.create('direct');
  const turns: Pick<Turn, 'resume' | 'history'>[] = [];
  const agent = scripted(async function* ({ resume, history }) {
    turns.push({ resume, history });
    if (turns.length > 1) return;
    yield {
      type: 'interrupted',
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { messageId: 'q', role: 'ROLE_AGENT', parts: [{ text: 'which?' }] },
      resume: { taskId: 'f1' },
    };
  });
  const asking = serve(t, task, agent);
  await task.log.work.request('agent.argocd', task.job().work, { id: 'w1' });
  await until(async () =>
    (await task.inputs()).some(input => input.kind === 'status' && input.state === 'TASK_STATE_INPUT_REQUIRED'),
  );
  await task.fold();
  asking.stop();
  await asking.served;
  const message = { messageId: 'm2', role: 'ROLE_USER' as const, parts: [{ text: 'that one' }] };
  await task.message('that one', 'm2', 'agent.argocd', 'transparent').store();
  // The end of this turn is not folded.
  const answered = serve(t, task, agent, { drainMs: 0 });
  await task.log.work.request('agent.argocd', task.job(1, { turn: 2, message }).work, { id: 'w2' });
  await until(() => turns.length === 2);
  answered.stop();
  await answered.served;
  assert.deepEqual(
    turns.map(({ resume }) => resume),
    [undefined, { taskId: 'f1' }],
  );
  assert.deepEqual(
    turns.map(({ history }) => history.map(({ role, parts }) => [role, parts[0]?.text])),
    [
      [],
      [
        ['ROLE_USER', 'hello'],
        ['ROLE_AGENT', 'which?'],
      ],
    ],
  );
});

test('a call that failed as retryable is retried a bounded number of times, and replaces the text of the first attempt [S4-40 C-5]', async t => {
  const failing = (times: number, retryable = true) => {
    let calls = 0;
    const agent = scripted(async function* () {
      calls += 1;
      yield { type: 'text', text: `try ${calls}, ` };
      if (calls <= times) yield { type: 'failed', reason: 'the tool was busy', retryable };
      else yield { type: 'text', text: 'done' };
    });
    return { agent, calls: () => calls };
  };
  const cases = [
    { times: 1, calls: 2, state: 'TASK_STATE_COMPLETED', text: 'try 2, done' },
    { times: 9, calls: 2, state: 'TASK_STATE_FAILED', text: 'try 2, ' },
    { times: 9, retries: 2, calls: 3, state: 'TASK_STATE_FAILED', text: 'try 3, ' },
    { times: 9, retries: 0, calls: 1, state: 'TASK_STATE_FAILED', text: 'try 1, ' },
    { times: 1, retryable: false, calls: 1, state: 'TASK_STATE_FAILED', text: 'try 1, ' },
  ];
  for (const { times, retries, retryable, calls, state, text } of cases) {
    const task = await TaskLog.create('caipe');
    const { agent, calls: made } = failing(times, retryable);
    const { stop, served } = serve(t, task, agent, retries === undefined ? {} : { retries });
    await task.log.work.request('agent.argocd', task.job().work, { id: 'w' });
    await until(async () => (await task.records()).some(({ inputs }) => inputs.some(({ kind }) => kind === 'ended')));
    // The item is done when the log shows the end of its turn.
    const fold = await task.fold();
    stop();
    await served;
    assert.deepEqual([made(), task.ended()?.state, fold.textOf(ANSWER.name)], [calls, state, text]);
    if (state === 'TASK_STATE_FAILED') assert.equal(task.ended()?.reason, 'the tool was busy');
  }
});

test('an agent that is stopped several times uses up neither its attempts nor its retries [S4-40 C-5]', async t => {
  const task = await TaskLog.create('caipe');
  const attempts: number[] = [];
  let stopped: (() => void) | undefined;
  const stopsMax = ATTEMPTS_MAX_DEFAULT + 2;
  const agent = scripted(async function* (turn) {
    attempts.push(turn.attempt);
    yield { type: 'text', text: `try ${turn.attempt}, ` };
    if (attempts.length <= stopsMax) {
      stopped?.();
      await new Promise<void>(resolve => turn.signal.addEventListener('abort', () => resolve(), { once: true }));
    } else if (attempts.length === stopsMax + 1) {
      yield { type: 'failed', reason: 'the tool was busy', retryable: true };
    } else {
      yield { type: 'text', text: 'done' };
    }
  });
  await task.log.work.request('agent.argocd', task.job().work, { id: 'w' });
  for (let stops = 0; stops < stopsMax; stops += 1) {
    const begun = new Promise<void>(resolve => {
      stopped = resolve;
    });
    const { stop, served } = serve(t, task, agent, { drainMs: 0 });
    await begun;
    stop();
    await served;
  }
  const last = serve(t, task, agent, { retries: 1 });
  await until(async () => (await task.records()).some(({ inputs }) => inputs.some(({ kind }) => kind === 'ended')));
  const fold = await task.fold();
  last.stop();
  await last.served;
  assert.deepEqual(attempts, [1, 2, 3, 4, 5, 6, 7]);
  assert.deepEqual([task.ended()?.state, fold.textOf(ANSWER.name)], ['TASK_STATE_COMPLETED', 'try 7, done']);
});
