import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@hopline/a2a';
import { decide } from './decide.ts';
import { CALLS_MAX, LANES_MAX, STEP_UNITS_MAX, STEPS_MAX, TURNS_MAX } from './limits.ts';
import { agent, Scenario, supervisor } from './scenario.test-kit.ts';

const started = () => new Scenario().message('hello').says(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' });

test('the first message makes one task, submitted, with the message as it came in its history [S0-2 S0-3 S0-4]', () => {
  const story = new Scenario().message('show argocd version');
  assert.deepEqual(story.events(), ['task']);
  assert.equal(story.view?.task.status.state, 'TASK_STATE_SUBMITTED');
  assert.deepEqual(story.view?.task.history, [{ messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'show argocd version' }] }]);
});

test('the same message id again makes nothing [S1-9]', () => {
  const story = new Scenario().message('hello').message('hello');
  assert.deepEqual(story.events(), ['task']);
  assert.deepEqual(story.dropped, ['duplicate message']);
});

test('the first chunk of a lane opens, later ones append, and a lane that was never opened takes no text [S0-13 C-18]', () => {
  const story = started().text(agent(), 'a', 'lost?').opens(agent(), 'a').text(agent(), 'a', 'H').text(agent(), 'a', 'ere');
  assert.deepEqual(story.events(), ['task', '=H', '+ere']);
  assert.deepEqual(story.dropped, ['unknown lane']);
});

test('name and description stand on every chunk [S0-8]', () => {
  const shown = { name: 'streaming_result', description: 'Streaming result' };
  const story = started().opens(agent(), 'a', shown).text(agent(), 'a', '1').text(agent(), 'a', '2', true);
  for (const fact of story.facts) {
    if (fact.kind !== 'artifact.updated') continue;
    const { name, description } = fact.event.artifactUpdate.artifact;
    assert.deepEqual({ name, description }, shown);
  }
});

test('a streamed artifact closes exactly once, and takes nothing after [S4-19 C-2]', () => {
  const story = started()
    .opens(agent(), 'a')
    .text(agent(), 'a', 'x', true)
    .text(agent(), 'a', 'late')
    .says(agent(), { kind: 'close', lane: 'a' });
  assert.deepEqual(story.events(), ['task', '=x', '+.']);
  assert.deepEqual(story.dropped, ['closed lane', 'closed lane']);
  const flushed = started().opens(agent(), 'a').text(agent(), 'a', 'x').says(agent(), { kind: 'close', lane: 'a' });
  assert.deepEqual(flushed.events(), ['task', '=x', '+.']);
});

test('an answer of one chunk opens unclosed in caipe; where the agent’s own artifacts pass, it is one event [S0-17]', () => {
  const caipe = started().opens(agent(), 'a').text(agent(), 'a', 'whole', true);
  assert.deepEqual(caipe.events(), ['task', '=whole', '+.']);
  const own = new Scenario()
    .message('hello', 'm1', 'supervisor', 'transparent')
    .opens(supervisor(), 'a')
    .text(supervisor(), 'a', 'whole', true);
  assert.deepEqual(own.events(), ['task', '=whole.']);
});

test('the first chunk of a new attempt replaces what the dead one had streamed [C-5]', () => {
  const story = started()
    .opens(agent(), 'a')
    .text(agent(), 'a', 'dead')
    .opens(agent('call-1-1', 2), 'a')
    .text(agent('call-1-1', 1), 'a', 'zombie')
    .text(agent('call-1-1', 2), 'a', 'alive');
  assert.deepEqual(story.events(), ['task', '=dead', '=alive']);
  assert.deepEqual(story.dropped, ['stale attempt']);
  assert.deepEqual(
    story.view?.task.artifacts?.map(artifact => artifact.parts),
    [[{ text: 'alive' }]],
  );
});

test('a new attempt that says nothing leaves nothing of the dead one [C-5]', () => {
  const story = started().opens(agent(), 'a').text(agent(), 'a', 'dead').opens(agent('call-1-1', 2), 'a');
  story.says(agent('call-1-1', 2), { kind: 'close', lane: 'a' });
  assert.deepEqual(story.events(), ['task', '=dead', '=.']);
});

test('nobody writes to another producer’s lane [S1-15]', () => {
  const story = started().opens(supervisor(), 'plan').text(agent(), 'plan', 'mine').opens(agent(), 'plan');
  assert.deepEqual(story.events(), ['task']);
  assert.deepEqual(story.dropped, ['foreign lane', 'foreign lane']);
});

test('one terminal event, last; everything after it is dropped [S0-25 S3-6]', () => {
  const story = started().says(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  story
    .says(supervisor(), { kind: 'status', state: 'TASK_STATE_FAILED' })
    .opens(agent(), 'a')
    .text(agent(), 'a', 'late')
    .cancel()
    .message('more', 'm2');
  assert.deepEqual(story.events(), ['task', 'working', 'completed']);
  assert.deepEqual(story.dropped, ['terminal', 'terminal', 'terminal', 'terminal', 'terminal']);
});

test('working again without a message is no event [S0-23]', () => {
  const story = started()
    .says(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' })
    .says(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' });
  assert.deepEqual(story.events(), ['task', 'working']);
});

test('a task that is one message of the agent says so, on its fact and in its view [S1-11]', () => {
  const message: Message = { messageId: 'a1', role: 'ROLE_AGENT', parts: [{ text: '42' }] };
  const end = { kind: 'status', state: 'TASK_STATE_COMPLETED', message } as const;
  const direct = started().says(supervisor(), { ...end, direct: true });
  assert.deepEqual(direct.events(), ['task', 'working', 'completed']);
  assert.equal(direct.view?.direct, true);
  assert.equal(direct.facts.filter(fact => 'direct' in fact).length, 1, 'not on the states between');
  assert.equal(started().says(supervisor(), end).view?.direct, undefined);
});

test('only the root producer ends the task', () => {
  const story = started().says(agent(), { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  assert.deepEqual(story.dropped, ['not root']);
});

test('only an open task is carried forward, and that changes nothing of it [S4-44]', () => {
  const copyForward = { kind: 'copy-forward', startStoredAt: 0 } as const;
  assert.equal(decide(undefined, copyForward, 0).rejected, 'unknown task');
  assert.deepEqual(decide(started().aggregate, copyForward, 0), { facts: [] });
  const ended = started().says(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  assert.equal(decide(ended.aggregate, copyForward, 0).rejected, 'terminal');
});

test('a terminal state closes every open artifact first', () => {
  const story = started()
    .opens(agent(), 'a')
    .text(agent(), 'a', 'x')
    .opens(supervisor(), 'b')
    .text(supervisor(), 'b', 'y')
    .cancel();
  assert.deepEqual(story.events(), ['task', '=x', '=y', '+.', '+.', 'canceled']);
});

test('the end of a call closes what its agent left open, and ends it once', () => {
  const ended = { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED' } as const;
  const story = started()
    .opens(agent(), 'a')
    .text(agent(), 'a', 'x')
    .says(agent(), ended)
    .says(agent(), ended)
    .says(agent('call-9'), { ...ended, call: 'call-9' });
  assert.deepEqual(story.events(), ['task', '=x', '+.']);
  assert.equal(story.aggregate?.calls['call-1-1']?.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(story.dropped, ['ended call', 'unknown call']);
});

test('a message to a working task begins a turn: the old turn’s text is closed and its workers are heard no more', () => {
  const story = started().opens(agent(), 'a').text(agent(), 'a', 'x').message('again', 'm2').text(agent(), 'a', 'late');
  assert.deepEqual(story.events(), ['task', '=x', '+.']);
  assert.equal(story.aggregate?.turn, 2);
  assert.deepEqual(story.dropped, ['stale turn']);
  assert.deepEqual(
    story.view?.task.history?.map(message => message.messageId),
    ['m1', 'm2'],
  );
});

test('the answer to input-required continues the same task at working, and the question stands in the history [S3-11]', () => {
  const question = { messageId: 'q', role: 'ROLE_AGENT', parts: [{ text: 'which?' }] } as const;
  const story = started().says(supervisor(), {
    kind: 'status',
    state: 'TASK_STATE_INPUT_REQUIRED',
    message: { ...question, parts: [...question.parts] },
  });
  story.message('that one', 'm2');
  assert.deepEqual(story.events(), ['task', 'working', 'input_required', 'working']);
  assert.deepEqual(
    story.view?.task.history?.map(message => message.messageId),
    ['m1', 'q', 'm2'],
  );
});

test('ids in an agent’s message are ours [S1-14]', () => {
  const message = { messageId: 'x', role: 'ROLE_AGENT', parts: [], taskId: 'foreign', contextId: 'foreign' } as const;
  const story = started().says(supervisor(), {
    kind: 'status',
    state: 'TASK_STATE_COMPLETED',
    message: { ...message, parts: [] },
  });
  const said = story.view?.task.status.message;
  assert.deepEqual([said?.taskId, said?.contextId], ['t1', 'c1']);
});

test('bounds: the lane, call and turn after the last one', () => {
  const lanes = started();
  for (let index = 0; index <= LANES_MAX; index++) lanes.opens(agent(), `lane-${index}`);
  assert.equal(lanes.view?.task.status.state, 'TASK_STATE_FAILED');
  const calls = new Scenario().message('hello');
  for (let index = 0; index < CALLS_MAX; index++) calls.says(supervisor(), { kind: 'call', call: `c${index}`, agent: 'a' });
  assert.equal(calls.view?.task.status.state, 'TASK_STATE_SUBMITTED');
  calls.says(supervisor(), { kind: 'call', call: 'one more', agent: 'a' });
  assert.equal(calls.view?.task.status.state, 'TASK_STATE_FAILED');
  const turns = new Scenario();
  for (let index = 1; index <= TURNS_MAX; index++) turns.message('x', `m${index}`);
  assert.deepEqual(turns.dropped, []);
  assert.deepEqual(turns.message('x', 'one more').dropped, ['too many turns']);
});

test('facts never go back in time, whatever the clock does [S4-17]', () => {
  const story = started();
  const times = story.facts.map(fact => fact.at);
  assert.deepEqual(
    times,
    [...times].sort((a, b) => a - b),
  );
});

test('a step is recorded for the root producer alone, unseen by clients, counted per turn, and bounded', () => {
  const story = new Scenario().message('hello');
  const before = story.events().length;
  story.says(supervisor(), { kind: 'step', step: '1', payload: { text: 'hi' } });
  assert.deepEqual(story.facts.at(-1), { kind: 'step.recorded', at: story.aggregate?.at, step: '1', payload: { text: 'hi' } });
  assert.equal(story.events().length, before);
  assert.equal(story.aggregate?.steps, 1);
  story.says(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' });
  story.says(agent(), { kind: 'step', step: '2', payload: 1 });
  assert.deepEqual(story.dropped, ['not root']);
  const edge = 'x'.repeat(STEP_UNITS_MAX - 2);
  story.says(supervisor(), { kind: 'step', step: '2', payload: edge });
  assert.equal(story.aggregate?.steps, 2);
  story.message('more', 'm2');
  assert.equal(story.aggregate?.steps, undefined);
  for (let step = 0; step < STEPS_MAX; step += 1)
    story.says(supervisor(1, 2), { kind: 'step', step: String(step), payload: null });
  assert.equal(story.aggregate?.state, 'TASK_STATE_SUBMITTED');
  story.says(supervisor(1, 2), { kind: 'step', step: 'one more', payload: null });
  assert.equal(story.aggregate?.state, 'TASK_STATE_FAILED');
  const other = new Scenario().message('hello').says(supervisor(), { kind: 'step', step: '1', payload: `${edge}x` });
  assert.equal(other.aggregate?.state, 'TASK_STATE_FAILED');
});

test('the supervisor may end the call of an agent that is gone, and what that agent says later is dropped', () => {
  const story = new Scenario().message('hello').says(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' });
  story.opens(agent(), 'call-1-1/answer').text(agent(), 'call-1-1/answer', 'so far');
  story.says(supervisor(), { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_FAILED', reason: 'gone', retryable: true });
  assert.equal(story.aggregate?.calls['call-1-1']?.state, 'TASK_STATE_FAILED');
  const facts = story.facts.length;
  story.opens(agent('call-1-1', 2), 'call-1-1/answer').text(agent('call-1-1', 2), 'call-1-1/answer', 'late');
  story.says(agent('call-1-1', 2), { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED' });
  assert.equal(story.facts.length, facts);
  story.says(supervisor(), { kind: 'call', call: 'call-1-2', agent: 'files' });
  story.says(agent('call-1-1'), { kind: 'ended', call: 'call-1-2', state: 'TASK_STATE_COMPLETED' });
  assert.equal(story.aggregate?.calls['call-1-2']?.state, undefined);
});
