import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type Job, Requeued } from '@hopline/log';
import { STEP_NAME_UNITS_MAX, STEP_OUTCOME_BYTES_MAX } from '@hopline/task';
import { until } from '../../../test/kit/until.ts';
import { AttemptFailed } from './attempt-failed.ts';
import { type AgentTurn, type DefinedAgent, defineAgent } from './define-agent.ts';
import { done, failed, needsInput } from './event-constructors.ts';
import { AGENT_STEPS_BYTES_MAX, AGENT_STEPS_MAX } from './limits.ts';
import { model } from './model.ts';
import { runTurn } from './run-turn.ts';
import { step } from './step.ts';
import { CALL, quiet, run, TaskLog } from './task-log.test-kit.ts';
import { playTurn } from './test-kit.ts';
import { tool } from './tool.ts';

type Script = Parameters<typeof defineAgent>[0]['run'];

const agentOf = (script: Script) => defineAgent({ name: 'argocd', description: 'Has steps', run: script });

/** A script that counts how often each step has run, and dies before the step with number `diesBefore` in its first attempt. */
function counting(names: readonly string[], counts: Map<string, number>, die: () => void, diesBefore = names.length) {
  return async function* (turn: AgentTurn) {
    for (const [index, name] of names.entries()) {
      if (turn.attempt === 1 && index === diesBefore) {
        die();
        await new Promise(() => {});
      }
      const result = yield* step(name, ({ key }) => {
        const count = (counts.get(key) ?? 0) + 1;
        counts.set(key, count);
        return { name, count };
      });
      yield `${result.name} ${result.count}\n`;
    }
  };
}

/** Folds what the attempt writes while it runs, as a relay does. */
async function folded<T>(task: TaskLog, running: Promise<T>): Promise<T> {
  let isOver = false;
  const ended = running.finally(() => {
    isOver = true;
  });
  ended.catch(() => {});
  let folds = 0;
  await until(async () => {
    const { length } = await task.records();
    if (length > folds) {
      await task.foldNew();
      folds = length;
    }
    return isOver;
  });
  return await ended;
}

for (const mode of ['caipe', 'direct'] as const) {
  test(`${mode}: the next attempt gets the results that the dead one has stored, and runs only the rest`, async () => {
    const task = await TaskLog.create(mode);
    const counts = new Map<string, number>();
    const stop = new AbortController();
    const names = ['reserve', 'charge', 'charge', 'send'];
    const agent = agentOf(counting(names, counts, () => stop.abort(), 2));
    await assert.rejects(folded(task, run(task, agent, task.job(), stop.signal)), Requeued);
    assert.deepEqual([...counts.values()], [1, 1]);
    await folded(task, run(task, agent, task.job(2)));
    assert.deepEqual([...counts.values()], [1, 1, 1, 1]);
    const steps = task.facts.flatMap(fact => (fact.kind === 'agent-step.recorded' ? [fact] : []));
    assert.deepEqual(
      steps.map(({ attempt, step, n, phase, of }) => [attempt, step, n, phase, ...(of === undefined ? [] : [of])]),
      [
        [1, 'reserve', 1, 'reached'],
        [1, 'reserve', 1, 'stored'],
        [1, 'charge', 1, 'reached'],
        [1, 'charge', 1, 'stored'],
        [2, 'reserve', 1, 'reached'],
        [2, 'reserve', 1, 'reused', 1],
        [2, 'charge', 1, 'reached'],
        [2, 'charge', 1, 'reused', 1],
        [2, 'charge', 2, 'reached'],
        [2, 'charge', 2, 'stored'],
        [2, 'send', 1, 'reached'],
        [2, 'send', 1, 'stored'],
      ],
    );
    assert.ok(steps.every(({ producer }) => producer === (mode === 'direct' ? 'agent' : CALL)));
  });
}

test('a step does not return before a relay has stored its result', async () => {
  const task = await TaskLog.create('caipe');
  const passed: string[] = [];
  const agent = agentOf(async function* () {
    passed.push(yield* step('slow', () => 'ran'));
  });
  const running = run(task, agent);
  await until(async () => (await task.inputs()).some(input => input.kind === 'agent-step' && input.phase === 'stored'));
  assert.deepEqual(passed, []);
  await folded(task, running);
  assert.deepEqual(passed, ['ran']);
});

test('what a step throws is stored, and thrown again in the next attempt', async () => {
  const task = await TaskLog.create('caipe');
  const stop = new AbortController();
  let runs = 0;
  const caught: unknown[] = [];
  const agent = agentOf(async function* (turn) {
    try {
      yield* step('pay', () => {
        runs += 1;
        throw new RangeError('too much');
      });
    } catch (error) {
      caught.push(error instanceof Error && [error.name, error.message]);
    }
    yield* step('refund', () => null);
    if (turn.attempt === 1) {
      stop.abort();
      await new Promise(() => {});
    }
  });
  await assert.rejects(folded(task, run(task, agent, task.job(), stop.signal)), Requeued);
  await folded(task, run(task, agent, task.job(2)));
  assert.equal(runs, 1);
  assert.deepEqual(caught, [
    ['RangeError', 'too much'],
    ['RangeError', 'too much'],
  ]);
});

/** Attempts of a supervisor's call that is repeated once after a retryable failure. */
const repeated = (task: TaskLog, agent: DefinedAgent, job: Job, signal = new AbortController().signal) =>
  folded(task, runTurn({ log: task.log, agent, name: 'argocd', logger: quiet, signal, retries: 1 }, job));

/** Runs steps, lets those whose names are in `broken` throw, and fails as retryable if the step `fetch` throws. */
function fetching(ran: string[], broken: ReadonlySet<string>, afterFetch: () => Promise<void> = async () => {}): Script {
  const stepOf = (name: string) =>
    step(name, () => {
      ran.push(name);
      if (broken.has(name)) throw new Error(`${name} is away`);
      return name;
    });
  return async function* () {
    yield* stepOf('reserve');
    try {
      yield* stepOf('cache');
    } catch {
      yield* stepOf('charge');
    }
    try {
      yield yield* stepOf('fetch');
    } catch {
      await afterFetch();
      yield failed('the server is away', { retryable: true });
    }
  };
}

test('a repeated call runs the steps that failed last again, and no earlier ones', async () => {
  const task = await TaskLog.create('caipe');
  const ran: string[] = [];
  const broken = new Set(['cache', 'fetch']);
  const agent = agentOf(fetching(ran, broken));
  await assert.rejects(repeated(task, agent, task.job()), AttemptFailed);
  assert.deepEqual(ran.splice(0), ['reserve', 'cache', 'charge', 'fetch']);
  broken.clear();
  const outcome = await repeated(task, agent, task.job(2));
  assert.equal(outcome?.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(ran, ['fetch']);
});

test('a failed step of a dead attempt still counts, and runs again if its call is repeated', async () => {
  const task = await TaskLog.create('caipe');
  const ran: string[] = [];
  const stop = new AbortController();
  const broken = new Set(['fetch']);
  const dying = fetching(ran, broken, async () => {
    stop.abort();
    await new Promise(() => {});
  });
  await assert.rejects(repeated(task, agentOf(dying), task.job(), stop.signal), Requeued);
  broken.clear();
  ran.length = 0;
  const agent = agentOf(fetching(ran, broken));
  await assert.rejects(repeated(task, agent, task.job(2, { requeues: 1 })), AttemptFailed);
  assert.deepEqual(ran, []);
  const outcome = await repeated(task, agent, task.job(3, { requeues: 1 }));
  assert.equal(outcome?.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(ran, ['fetch']);
});

test('a different step in the place of a stored one makes the turn fail, and the reason names both', async () => {
  const steps = [{ step: 'reserve', n: 1, outcome: { value: 1 }, isReused: false }];
  const other = agentOf(async function* () {
    yield* step('charge', () => 1);
  });
  const { end } = await playTurn(other, 'go', { attempt: 2, steps });
  assert.match(end.reason ?? '', /^step charge runs where attempt 1 of this turn stored step reserve: /);
});

test('a step’s values are as JSON keeps them, even in the first attempt', async () => {
  const values: unknown[] = [];
  const agent = agentOf(async function* () {
    values.push(yield* step('date', () => new Date(0)));
    values.push(yield* step('nothing', () => undefined));
    values.push(yield* step('hole', () => ({ a: undefined, b: [undefined] })));
  });
  const first = await playTurn(agent, 'go');
  assert.deepEqual(values, ['1970-01-01T00:00:00.000Z', undefined, { b: [null] }]);
  const again = await playTurn(agent, 'go', { attempt: 2, steps: first.steps });
  assert.deepEqual(values.slice(3), values.slice(0, 3));
  assert.ok(again.steps.every(({ isReused }) => isReused));
});

test('steps have limits, and each error names the step and the number', async () => {
  const reasonOf = async (script: Script) => (await playTurn(agentOf(script), 'go')).end.reason ?? 'none';
  const ofBytes = (bytes: number) => 'x'.repeat(bytes - '{"value":""}'.length);
  const edge = async function* () {
    yield* step('edge', () => ofBytes(STEP_OUTCOME_BYTES_MAX));
  };
  assert.equal(await reasonOf(edge), 'none');
  const above = async function* () {
    yield* step('big', () => ofBytes(STEP_OUTCOME_BYTES_MAX + 1));
  };
  assert.match(await reasonOf(above), /^step big: its result has 131073 bytes of JSON, more than 131072$/);
  const many = (count: number) =>
    async function* () {
      for (let n = 0; n < count; n += 1) yield* step('many', () => n);
    };
  assert.equal(await reasonOf(many(AGENT_STEPS_MAX)), 'none');
  assert.match(await reasonOf(many(AGENT_STEPS_MAX + 1)), /more than 1000 steps/);
  const large = async function* () {
    for (let bytes = 0; bytes <= AGENT_STEPS_BYTES_MAX; bytes += STEP_OUTCOME_BYTES_MAX)
      yield* step('large', () => ofBytes(STEP_OUTCOME_BYTES_MAX));
  };
  assert.match(await reasonOf(large), /more than 8388608 bytes/);
  for (const [name, expected] of [
    ['', /^step: name is empty$/],
    ['x'.repeat(STEP_NAME_UNITS_MAX + 1), /^step: name has more than 128 characters$/],
  ] as const)
    assert.match(
      await reasonOf(async function* () {
        yield* step(name, () => 1);
      }),
      expected,
    );
  for (const value of [() => 1, 1n])
    assert.match(
      await reasonOf(async function* () {
        yield* step('odd', () => value);
      }),
      /^step odd: its result is a (function|bigint), which cannot be written as JSON$/,
    );
});

test('the error of a step outside of the run of defineAgent states where steps work', async () => {
  const steps = step('lost', () => 1);
  await steps.next();
  await assert.rejects(steps.next(undefined), /work only in the run of defineAgent/);
});

test('a step, tool or model without yield* makes the turn fail at its end, and the reason names it', async () => {
  const reasonOf = async (script: Script) => (await playTurn(agentOf(script), 'x')).end.reason;
  const afterAwait = await reasonOf(async function* () {
    yield 'a';
    await setImmediate();
    yield* step('reserve', () => 1);
    step('charge', () => 2);
    yield 'b';
  });
  assert.equal(afterAwait, 'step charge has not run: write yield* before step(…)');
  const ended = await reasonOf(async function* () {
    tool('weather', {}, () => 1);
    yield done();
  });
  assert.equal(ended, 'tool weather has not run: write yield* before tool(…)');
  const asked = await reasonOf(async function* () {
    model({ model: 'm', apiKey: 'k' });
    yield needsInput('Who?');
  });
  assert.equal(asked, 'model has not run: write yield* before model(…)');
  const failure = await reasonOf(async function* () {
    step('charge', () => 1);
    yield failed('declined');
  });
  assert.equal(failure, 'declined', 'the failure of the agent is the reason');
});

test('a step that is started later counts as run, and a step without yield* makes only its own turn fail', async () => {
  const first = agentOf(async function* (turn) {
    const later = step('later', () => 1);
    if (turn.text === 'bare') step('bare', () => 2);
    yield 'a';
    await setImmediate();
    yield* later;
  });
  const turns = await Promise.all(['whole', 'bare', 'whole'].map(text => playTurn(first, text)));
  const failure = 'step bare has not run: write yield* before step(…)';
  assert.deepEqual(
    turns.map(({ end }) => end.reason),
    [undefined, failure, undefined],
  );
});

test('the type of a result is the type of its JSON', async () => {
  const agent = agentOf(async function* () {
    const made = yield* step('a', () => ({ at: new Date(0), rows: [1] }));
    const at: string = made.at;
    // @ts-expect-error A string has no such function.
    assert.throws(() => made.at.getTime(), TypeError);
    const stored = yield* tool('b', {}, () => new Date(0), { stored: true });
    const unstored = yield* tool('c', {}, () => new Date(0));
    yield `${at} ${stored.slice(0, 4)} ${unstored.getTime()} ${made.rows[0]}`;
  });
  const { text, end } = await playTurn(agent, 'x');
  assert.deepEqual([text, end.state], ['1970-01-01T00:00:00.000Z 1970 0 1', 'TASK_STATE_COMPLETED']);
});
