import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TASK_STATES, type TaskState } from '@hopline/a2a';
import fc from 'fast-check';
import { AUTH_TIMEOUT, INPUT_TIMEOUT } from './decide.ts';
import { agent, Scenario, supervisor } from './scenario.test-kit.ts';
import { allows, pathTo } from './transitions.ts';

/** Rows S3-5 and C-15 of the contract, written by hand and not derived from the code. */
const LEGAL = [
  'submitted>working',
  'submitted>failed',
  'submitted>canceled',
  'submitted>rejected',
  'working>working',
  'working>input_required',
  'working>auth_required',
  'working>completed',
  'working>failed',
  'working>canceled',
  'working>rejected',
  'input_required>working',
  'input_required>failed',
  'input_required>canceled',
  'input_required>rejected',
  'auth_required>working',
  'auth_required>failed',
  'auth_required>canceled',
  'auth_required>rejected',
];

const short = (state: TaskState) => state.replace('TASK_STATE_', '').toLowerCase();
type Reported = Exclude<TaskState, 'TASK_STATE_SUBMITTED'>;

test('the table matches the contract, with rejected and auth-required [S3-5 C-15]', () => {
  const allowed = TASK_STATES.flatMap(from =>
    TASK_STATES.filter(to => allows(from, to)).map(to => `${short(from)}>${short(to)}`),
  );
  assert.deepEqual(allowed.toSorted(), LEGAL.toSorted());
});

test('every path has legal steps only; none leaves a terminal state or returns to submitted [S3-5]', () => {
  for (const from of TASK_STATES)
    for (const to of TASK_STATES) {
      const path = pathTo(from, to);
      for (const [index, step] of path.entries())
        assert.ok(LEGAL.includes(`${short(index === 0 ? from : path[index - 1]!)}>${short(step)}`));
    }
  assert.deepEqual(pathTo('TASK_STATE_COMPLETED', 'TASK_STATE_WORKING'), []);
  assert.deepEqual(pathTo('TASK_STATE_WORKING', 'TASK_STATE_SUBMITTED'), []);
});

const root = fc.record({ attempt: fc.integer({ min: 1, max: 2 }), turn: fc.integer({ min: 1, max: 3 }) });
const state = fc.constantFrom<TaskState | 'TASK_STATE_UNKNOWN' | ''>(...TASK_STATES, 'TASK_STATE_UNKNOWN', '');
const message = { messageId: 'a', role: 'ROLE_AGENT' as const, parts: [{ text: 'progress' }] };
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(root, state, fc.boolean())
      .map(([{ attempt, turn }, to, hasMessage]) => statusOf(attempt, turn, to, hasMessage)),
  },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }).map(id => (story: Scenario) => story.message('more', `m${id}`)) },
  { weight: 1, arbitrary: fc.constant((story: Scenario) => story.cancel()) },
  { weight: 1, arbitrary: fc.constant((story: Scenario) => story.text(agent(), 'a', 'x')) },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 0, max: 9 }).map(request => (story: Scenario) => story.when({ kind: 'timeout', request })),
  },
  { weight: 1, arbitrary: fc.constant((story: Scenario) => story.when({ kind: 'lost', from: supervisor() })) },
);

function statusOf(attempt: number, turn: number, to: string, hasMessage: boolean) {
  // A subject may be in a state that is unknown here, from agents of other versions.
  const input = { kind: 'status' as const, state: to as Reported, ...(hasMessage && { message }) };
  return (story: Scenario) => story.input(supervisor(attempt, turn), input);
}

/** Random histories of a task; each of their transitions must be legal. */
function lives(reached: Set<string>) {
  return fc.property(fc.array(step, { maxLength: 30 }), steps => {
    const story = new Scenario().message('hello');
    for (const next of steps) next(story);
    let before = 'submitted';
    for (const now of story.events().filter(event => event !== 'task')) {
      if (/^[=+]/.test(now)) continue;
      assert.ok(LEGAL.includes(`${before}>${now}`), `${before}>${now}`);
      reached.add(`${before}>${now}`);
      before = now;
    }
  });
}

test('for any inputs, only legal transitions become facts, and none leaves a terminal state [S3-5 S3-6 C-14]', () => {
  fc.assert(lives(new Set()), { numRuns: 1_000 });
});

test('the random histories reach every legal transition [S3-5]', () => {
  const reached = new Set<string>();
  fc.assert(lives(reached), { numRuns: 3_000, seed: 1 });
  assert.deepEqual(
    LEGAL.filter(transition => !reached.has(transition)),
    [],
  );
});

test('an unreachable state is rejected with its reason [S3-5]', () => {
  const story = new Scenario()
    .message('hello')
    .input(supervisor(), { kind: 'status', state: 'TASK_STATE_SUBMITTED' as Reported, message });
  assert.deepEqual([story.events(), story.rejected], [['task'], ['illegal transition']]);
});

test('a submitted task can fail [S3-7]', () => {
  const story = new Scenario().message('hello').input(supervisor(), { kind: 'status', state: 'TASK_STATE_FAILED' });
  assert.deepEqual(story.events(), ['task', 'failed']);
});

test('an agent that asks twice is shown as working in between, even if it did not report that [S3-5]', () => {
  const asks = { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED', message } as const;
  const story = new Scenario().message('hello').input(supervisor(), asks).input(supervisor(), asks);
  assert.deepEqual(story.events(), ['task', 'working', 'input_required', 'working', 'input_required']);
});

const waiting = () =>
  new Scenario().message('hello').input(supervisor(), { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED', message });

test('a request for input that times out fails its task, retryably and with the reason [S3-8]', () => {
  const story = waiting();
  const request = story.aggregate!.inputRequest!.n;
  story.when({ kind: 'timeout', request });
  assert.deepEqual(story.events(), ['task', 'working', 'input_required', 'failed']);
  assert.deepEqual(story.view?.task.metadata, { reason: INPUT_TIMEOUT, retryable: true });
  story.message('too late', 'm2');
  assert.deepEqual(story.rejected, ['terminal']);
});

test('an answer that was stored before the timeout wins, even if the agent has asked again since [S3-8]', () => {
  const story = waiting();
  const timeout = { kind: 'timeout', request: story.aggregate!.inputRequest!.n } as const;
  story.message('that one', 'm2').when(timeout);
  story.input(supervisor(1, 2), { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED', message }).when(timeout);
  assert.deepEqual(story.events(), ['task', 'working', 'input_required', 'working', 'input_required']);
  assert.deepEqual(story.rejected, ['not waiting', 'not waiting']);
});

test('a request for credentials that times out fails its task; a timeout applies only to the request that it names', () => {
  const needing = () =>
    new Scenario().message('hello').input(supervisor(), { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message });
  const story = needing();
  story.when({ kind: 'timeout', request: 1 }).when({ kind: 'auth-timeout', request: 2 });
  assert.deepEqual(story.rejected, ['not waiting', 'not waiting']);
  story.when({ kind: 'auth-timeout', request: story.aggregate!.authRequest!.n });
  assert.deepEqual(story.events(), ['task', 'working', 'auth_required', 'failed']);
  assert.deepEqual(story.view?.task.metadata, { reason: AUTH_TIMEOUT, retryable: true });

  const again = needing().input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' });
  again.when({ kind: 'auth-timeout', request: 1 });
  again.input(supervisor(), { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message });
  again.when({ kind: 'auth-timeout', request: 1 });
  assert.deepEqual(again.rejected, ['not waiting', 'not waiting']);
  assert.deepEqual(again.aggregate?.authRequest?.n, 2);
  again.input(supervisor(), { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED', message });
  again.when({ kind: 'auth-timeout', request: 2 });
  const { inputRequest, state } = again.aggregate!;
  assert.deepEqual([inputRequest?.n, state], [1, 'TASK_STATE_INPUT_REQUIRED'], 'the two kinds are counted apart');
});

test('a repeated request for credentials does not extend the deadline, unless the task worked in between', () => {
  const needs = { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message } as const;
  const story = new Scenario().message('hello').input(supervisor(), needs);
  const { at } = story.aggregate!.authRequest!;
  story.input(supervisor(), needs).input(supervisor(), needs);
  assert.deepEqual(story.aggregate?.authRequest, { n: 3, at });
  assert.ok(story.aggregate.at > at, 'time has passed');
  story.when({ kind: 'auth-timeout', request: 2 });
  assert.deepEqual(story.rejected, ['not waiting'], 'only the newest request times out');
  story.input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' }).input(supervisor(), needs);
  assert.equal(story.aggregate?.authRequest?.n, 4);
  assert.ok(story.aggregate.authRequest.at > at);
});

test('a called agent may request credentials and continue by itself; its other statuses are rejected [S3-5 C-14]', () => {
  const story = new Scenario().message('hello').input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' });
  story.input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' });
  story.input(agent(), { kind: 'status', state: 'TASK_STATE_WORKING' });
  story.input(agent(), { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message, resume: { taskId: 'theirs' } });
  const request = story.facts.at(-1);
  assert.deepEqual(request?.kind === 'status.changed' && [request.call, request.resume], ['call-1-1', { taskId: 'theirs' }]);
  assert.ok(!JSON.stringify(request?.kind === 'status.changed' && request.event).includes('theirs'));
  story.input(agent(), { kind: 'status', state: 'TASK_STATE_WORKING' });
  story.input(agent(), { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  story.input(agent('call-9'), { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message });
  assert.deepEqual(story.events(), ['task', 'working', 'auth_required', 'working']);
  assert.deepEqual(story.rejected, ['not root', 'not root', 'unknown call']);
});
