import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TASK_STATES, type TaskState } from '@hopline/a2a';
import fc from 'fast-check';
import { AUTH_TIMEOUT, INPUT_TIMEOUT } from './decide.ts';
import { agent, Scenario, supervisor } from './scenario.test-kit.ts';
import { allows, pathTo } from './transitions.ts';

/** S3-5 as it is written, and what C-15 adds. Not made from the code. */
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
type Said = Exclude<TaskState, 'TASK_STATE_SUBMITTED'>;

test('the table is the contract’s, with rejected and auth-required [S3-5 C-15]', () => {
  const allowed = TASK_STATES.flatMap(from =>
    TASK_STATES.filter(to => allows(from, to)).map(to => `${short(from)}>${short(to)}`),
  );
  assert.deepEqual(allowed.toSorted(), LEGAL.toSorted());
});

test('a path only has legal steps, and none leads out of an end or back to submitted [S3-5]', () => {
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
const message = { messageId: 'a', role: 'ROLE_AGENT' as const, parts: [{ text: 'said' }] };
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(root, state, fc.boolean()).map(([{ attempt, turn }, to, says]) => statusOf(attempt, turn, to, says)),
  },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }).map(id => (story: Scenario) => story.message('more', `m${id}`)) },
  { weight: 1, arbitrary: fc.constant((story: Scenario) => story.cancel()) },
  { weight: 1, arbitrary: fc.constant((story: Scenario) => story.text(agent(), 'a', 'x')) },
  {
    weight: 1,
    arbitrary: fc
      .integer({ min: 0, max: 9 })
      .map(question => (story: Scenario) => story.when({ kind: 'timeout', request: question })),
  },
  { weight: 1, arbitrary: fc.constant((story: Scenario) => story.when({ kind: 'lost', from: supervisor() })) },
);

function statusOf(attempt: number, turn: number, to: string, says: boolean) {
  // Whatever stands on a subject: states that are none come from agents of other versions.
  const input = { kind: 'status' as const, state: to as Said, ...(says && { message }) };
  return (story: Scenario) => story.says(supervisor(attempt, turn), input);
}

/** Lives at random; each of their transitions must be legal. */
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

test('whatever is said, only legal transitions become facts, and nothing leaves an end [S3-5 S3-6 C-14]', () => {
  fc.assert(lives(new Set()), { numRuns: 1_000 });
});

test('the lives that are tried have every legal transition [S3-5]', () => {
  const reached = new Set<string>();
  fc.assert(lives(reached), { numRuns: 3_000, seed: 1 });
  assert.deepEqual(
    LEGAL.filter(transition => !reached.has(transition)),
    [],
  );
});

test('what no legal life leads to is dropped with its reason [S3-5]', () => {
  const story = new Scenario()
    .message('hello')
    .says(supervisor(), { kind: 'status', state: 'TASK_STATE_SUBMITTED' as Said, message });
  assert.deepEqual([story.events(), story.dropped], [['task'], ['illegal transition']]);
});

test('a task fails without ever having worked [S3-7]', () => {
  const story = new Scenario().message('hello').says(supervisor(), { kind: 'status', state: 'TASK_STATE_FAILED' });
  assert.deepEqual(story.events(), ['task', 'failed']);
});

test('an agent that asks again without having gone on is shown at work in between [S3-5]', () => {
  const asks = { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED', message } as const;
  const story = new Scenario().message('hello').says(supervisor(), asks).says(supervisor(), asks);
  assert.deepEqual(story.events(), ['task', 'working', 'input_required', 'working', 'input_required']);
});

const waiting = () =>
  new Scenario().message('hello').says(supervisor(), { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED', message });

test('a question that waited too long fails its task, retryably and with the reason [S3-8]', () => {
  const story = waiting();
  const question = story.aggregate!.inputRequest!.n;
  story.when({ kind: 'timeout', request: question });
  assert.deepEqual(story.events(), ['task', 'working', 'input_required', 'failed']);
  assert.deepEqual(story.view?.task.metadata, { reason: INPUT_TIMEOUT, retryable: true });
  story.message('too late', 'm2');
  assert.deepEqual(story.dropped, ['terminal']);
});

test('an answer that came before wins, also where the agent has asked anew since [S3-8]', () => {
  const story = waiting();
  const timeout = { kind: 'timeout', request: story.aggregate!.inputRequest!.n } as const;
  story.message('that one', 'm2').when(timeout);
  story.says(supervisor(1, 2), { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED', message }).when(timeout);
  assert.deepEqual(story.events(), ['task', 'working', 'input_required', 'working', 'input_required']);
  assert.deepEqual(story.dropped, ['not waiting', 'not waiting']);
});

test('credentials that never came fail the task, retryably and with the reason; each need of them, and no question, is meant', () => {
  const needing = () =>
    new Scenario().message('hello').says(supervisor(), { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message });
  const story = needing();
  story.when({ kind: 'timeout', request: 1 }).when({ kind: 'auth-timeout', request: 2 });
  assert.deepEqual(story.dropped, ['not waiting', 'not waiting']);
  story.when({ kind: 'auth-timeout', request: story.aggregate!.authRequest!.n });
  assert.deepEqual(story.events(), ['task', 'working', 'auth_required', 'failed']);
  assert.deepEqual(story.view?.task.metadata, { reason: AUTH_TIMEOUT, retryable: true });

  const again = needing().says(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' });
  again.when({ kind: 'auth-timeout', request: 1 });
  again.says(supervisor(), { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message });
  again.when({ kind: 'auth-timeout', request: 1 });
  assert.deepEqual(again.dropped, ['not waiting', 'not waiting']);
  assert.deepEqual(again.aggregate?.authRequest?.n, 2);
  again.says(supervisor(), { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED', message });
  again.when({ kind: 'auth-timeout', request: 2 });
  const { inputRequest: asked, state } = again.aggregate!;
  assert.deepEqual(
    [asked?.n, state],
    [1, 'TASK_STATE_INPUT_REQUIRED'],
    'questions keep the numbers they had before credentials were counted',
  );
});

test('who asks for credentials again while the task waits for them gives it no more time; who went on in between does', () => {
  const needs = { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message } as const;
  const story = new Scenario().message('hello').says(supervisor(), needs);
  const { at } = story.aggregate!.authRequest!;
  story.says(supervisor(), needs).says(supervisor(), needs);
  assert.deepEqual(story.aggregate?.authRequest, { n: 3, at });
  assert.ok(story.aggregate.at > at, 'time has passed');
  story.when({ kind: 'auth-timeout', request: 2 });
  assert.deepEqual(story.dropped, ['not waiting'], 'the newest need is the one that is meant');
  story.says(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' }).says(supervisor(), needs);
  assert.equal(story.aggregate?.authRequest?.n, 4);
  assert.ok(story.aggregate.authRequest.at > at);
});

test('a need of credentials from before it was counted waits on: nothing says when it began', () => {
  const story = new Scenario()
    .message('hello')
    .says(supervisor(), { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message });
  const { authRequest: _authAsked, ...before } = story.aggregate!;
  story.aggregate = before;
  story.when({ kind: 'auth-timeout', request: 1 });
  assert.deepEqual([story.dropped, story.aggregate?.state], [['not waiting'], 'TASK_STATE_AUTH_REQUIRED']);
});

test('a called agent may need credentials and go on by itself; what else it says of the task is not its business [S3-5 C-14]', () => {
  const story = new Scenario().message('hello').says(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' });
  story.says(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' });
  story.says(agent(), { kind: 'status', state: 'TASK_STATE_WORKING' });
  story.says(agent(), { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message, resume: { taskId: 'theirs' } });
  const asked = story.facts.at(-1);
  assert.deepEqual(asked?.kind === 'status.changed' && [asked.call, asked.resume], ['call-1-1', { taskId: 'theirs' }]);
  assert.ok(!JSON.stringify(asked?.kind === 'status.changed' && asked.event).includes('theirs'));
  story.says(agent(), { kind: 'status', state: 'TASK_STATE_WORKING' });
  story.says(agent(), { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  story.says(agent('call-9'), { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message });
  assert.deepEqual(story.events(), ['task', 'working', 'auth_required', 'working']);
  assert.deepEqual(story.dropped, ['not root', 'not root', 'not root']);
});
