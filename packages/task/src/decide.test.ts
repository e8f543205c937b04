import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ID_CHARS_MAX, type Message, textOf } from '@hopline/a2a';
import { type Producer, queueNotice, type StatusInput, TASK_ID_CHARS_MAX } from '@hopline/events';
import { decide, INPUTS_LOST } from './decide.ts';
import {
  CALL_AUTH_UNITS_MAX,
  REMOTE_RUN_UNITS_MAX,
  STEP_JSON_UNITS_MAX,
  STEP_NAME_UNITS_MAX,
  STEP_OUTCOME_BYTES_MAX,
  TURN_CALLS_MAX,
  TURN_LANES_BYTES_MAX,
  TURN_LANES_MAX,
  TURN_STEPS_MAX,
  TURNS_MAX,
} from './limits.ts';
import { agent, Scenario, supervisor } from './scenario.test-kit.ts';

const started = () => new Scenario().message('hello').input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' });

test('the first message creates one submitted task whose history is that message with the ids of the task [S0-2 S0-3 S0-4]', () => {
  const story = new Scenario().message('show argocd version');
  assert.deepEqual(story.events(), ['task']);
  assert.equal(story.view?.task.status.state, 'TASK_STATE_SUBMITTED');
  const { id: taskId, contextId } = story.view!.task;
  const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'show argocd version' }], taskId, contextId };
  assert.deepEqual(story.view?.task.history, [message]);
});

test('a later message has the ids of the task in the history, whatever its sender wrote there', () => {
  const message = {
    messageId: 'm2',
    role: 'ROLE_USER' as const,
    parts: [{ text: 'again' }],
    taskId: 'other',
    contextId: 'other',
  };
  const story = started().message('again', 'm2', 'supervisor', 'caipe', { message });
  const { id, contextId, history } = story.view!.task;
  assert.deepEqual(
    history?.map(message => [message.taskId, message.contextId]),
    [
      [id, contextId],
      [id, contextId],
    ],
  );
});

test('a supervisor’s call keeps either all the content of its work or none; an agent’s call keeps none', () => {
  const presentation = {
    text: { as: 'own', artifact: { name: 'response' } },
    progress: { name: 'progress' },
    notices: {
      start: { name: 's', description: '', text: '' },
      end: { name: 'e', description: '', text: '' },
      failed: { name: 'f', description: '', text: '' },
    },
  } as const;
  const message: Message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'write' }] };
  const call = { kind: 'call', call: 'call-1-1', agent: 'argocd' } as const;
  const fact = { kind: 'call.started', call: 'call-1-1', agent: 'argocd' };
  const whole = { presentation, message, metadata: { tone: 'dry' }, resume: null, trace: { traceparent: 't' } };
  const kept: [Partial<typeof whole>, object][] = [
    [whole, whole],
    [
      { presentation, message },
      { presentation, message },
    ],
    [{ presentation, resume: null }, {}],
    [{ message, metadata: { tone: 'dry' } }, {}],
  ];
  for (const [content, expected] of kept) {
    const story = new Scenario().message('hello').input(supervisor(), { ...call, ...content });
    const { at: _at, ...started } = story.facts.at(-1)!;
    assert.deepEqual(started, { ...fact, ...expected });
    assert.deepEqual(story.aggregate?.calls, { 'call-1-1': { agent: 'argocd' } }, 'each record holds the aggregate');
  }
  const direct = new Scenario('t2').message('hello', 'm1', 'agent.argocd', 'transparent');
  const { at: _at, ...started } = direct.input(agent('agent'), { ...call, ...whole }).facts.at(-1)!;
  assert.deepEqual(started, fact);
});

test('inputs under the id of another producer than the agent that sends them are rejected', () => {
  const story = started();
  const forged = { ...agent(), agent: 'files' };
  story.open(forged, 'a').input(forged, { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED' });
  story.open(agent('call-9'), 'b').open({ ...agent('agent'), agent: 'files' }, 'c');
  assert.deepEqual(story.rejected, ['other agent', 'other agent', 'unknown call', 'unknown call']);
  const direct = new Scenario('t2').message('hello', 'm1', 'agent.argocd', 'transparent');
  direct
    .open(forged, 'a')
    .open({ ...agent('agent'), agent: 'files' }, 'b')
    .open(agent('agent'), 'c');
  assert.deepEqual([direct.rejected, direct.facts.at(-1)?.kind], [['unknown call', 'other agent'], 'lane.opened']);
});

test('the server of an agent continues and cancels only tasks of that agent', () => {
  const story = started();
  const message = { messageId: 'm2', role: 'ROLE_USER' as const, parts: [{ text: 'x' }] };
  const again = { kind: 'message', message, contextId: 'c1', role: 'agent.files', profile: 'transparent' } as const;
  for (const input of [again, { kind: 'cancel' } as const])
    story.when({ kind: 'client', taskId: story.taskId, input, server: 'agent.files' });
  assert.deepEqual(story.rejected, ['other agent', 'other agent']);
  const ofAgent = new Scenario().message('hello', 'm1', 'agent.files', 'transparent');
  ofAgent.when({ kind: 'client', taskId: ofAgent.taskId, input: { kind: 'cancel' }, server: 'agent.files' });
  assert.equal(ofAgent.view?.task.status.state, 'TASK_STATE_CANCELED');
});

test('a repeated message id makes no fact [S1-9]', () => {
  const story = new Scenario().message('hello').message('hello');
  assert.deepEqual(story.events(), ['task']);
  assert.deepEqual(story.rejected, ['duplicate message']);
});

test('the first chunk of a lane opens, later ones append, and a lane that is not open rejects text [S0-13 C-18]', () => {
  const story = started().text(agent(), 'a', 'lost?').open(agent(), 'a').text(agent(), 'a', 'H').text(agent(), 'a', 'ere');
  assert.deepEqual(story.events(), ['task', '=H', '+ere']);
  assert.deepEqual(story.rejected, ['unknown lane']);
});

test('every chunk has name and description [S0-8]', () => {
  const shown = { name: 'streaming_result', description: 'Streaming result' };
  const story = started().open(agent(), 'a', shown).text(agent(), 'a', '1').text(agent(), 'a', '2', true);
  const chunks = story.facts.flatMap(fact => (fact.kind === 'artifact.updated' ? [fact.event.artifactUpdate.artifact] : []));
  assert.deepEqual(
    chunks.map(({ name, description }) => ({ name, description })),
    [shown, shown],
  );
});

/** A lane whose first chunk does not close it, as in profile caipe. */
const separate = { name: 'answer', separateClose: true as const };

test('a streamed artifact closes exactly once and rejects later text [S4-19 C-2]', () => {
  const story = started()
    .open(agent(), 'a', separate)
    .text(agent(), 'a', 'x', true)
    .text(agent(), 'a', 'late')
    .input(agent(), { kind: 'close', lane: 'a' });
  assert.deepEqual(story.events(), ['task', '=x', '+.']);
  assert.deepEqual(story.rejected, ['closed lane', 'closed lane']);
  const flushed = started().open(agent(), 'a').text(agent(), 'a', 'x').input(agent(), { kind: 'close', lane: 'a' });
  assert.deepEqual(flushed.events(), ['task', '=x', '+.']);
});

test('a lane with separateClose opens with a chunk that is not its last; without it an answer of one chunk is one event [S0-17]', () => {
  const story = started().open(agent(), 'a', separate).text(agent(), 'a', 'whole', true);
  assert.deepEqual(story.events(), ['task', '=whole', '+.']);
  const [artifact] = story.view?.task.artifacts ?? [];
  assert.deepEqual(Object.keys(artifact ?? {}).sort(), ['artifactId', 'name', 'parts'], 'the client does not see the rule');
  assert.deepEqual(started().open(agent(), 'a').text(agent(), 'a', 'whole', true).events(), ['task', '=whole.']);
});

test('the first chunk of a new attempt replaces the text of the dead one [C-5]', () => {
  const story = started()
    .open(agent(), 'a')
    .text(agent(), 'a', 'dead')
    .open(agent('call-1-1', 2), 'a')
    .text(agent('call-1-1', 1), 'a', 'zombie')
    .text(agent('call-1-1', 2), 'a', 'alive');
  assert.deepEqual(story.events(), ['task', '=dead', '=alive']);
  assert.deepEqual(story.rejected, ['stale attempt']);
  assert.deepEqual(
    story.view?.task.artifacts?.map(artifact => artifact.parts),
    [[{ text: 'alive' }]],
  );
});

test('a new attempt replaces the artifact that the dead attempt began, but not one that it completed [C-5]', () => {
  const part = (text: string, last = true, append = false) => ({
    kind: 'artifact' as const,
    lane: 'a',
    artifact: { name: 'a' },
    parts: [{ text }],
    append,
    last,
  });
  const second = agent('call-1-1', 2);
  const whole = started().input(agent(), part('dead', false)).input(second, part('alive'));
  assert.deepEqual(whole.events(), ['task', '=dead', '=alive.']);
  const chunks = started()
    .input(agent(), part('dead', false))
    .input(second, part('ali', false, true));
  chunks.input(agent(), part('zombie', true, true)).input(second, part('ve', true, true));
  assert.deepEqual(chunks.events(), ['task', '=dead', '=ali', '+ve.']);
  assert.deepEqual(chunks.rejected, ['stale attempt']);
  const complete = started()
    .input(agent(), part('one', false))
    .input(agent(), part(' two', true, true))
    .input(second, part('x'));
  assert.deepEqual(complete.rejected, ['closed lane']);
});

test('a new attempt without text empties the artifact of the dead one [C-5]', () => {
  const story = started().open(agent(), 'a').text(agent(), 'a', 'dead').open(agent('call-1-1', 2), 'a');
  story.input(agent('call-1-1', 2), { kind: 'close', lane: 'a' });
  assert.deepEqual(story.events(), ['task', '=dead', '=.']);
});

test("input to another producer's lane is rejected [S1-15]", () => {
  const story = started().open(supervisor(), 'plan').text(agent(), 'plan', 'mine').open(agent(), 'plan');
  assert.deepEqual(story.events(), ['task']);
  assert.deepEqual(story.rejected, ['other producer', 'other producer']);
});

test('the terminal event is the last, and everything after it is rejected [S0-25 S3-6]', () => {
  const story = started().input(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  story
    .input(supervisor(), { kind: 'status', state: 'TASK_STATE_FAILED' })
    .open(agent(), 'a')
    .text(agent(), 'a', 'late')
    .cancel()
    .message('more', 'm2');
  assert.deepEqual(story.events(), ['task', 'working', 'completed']);
  assert.deepEqual(story.rejected, ['terminal', 'terminal', 'terminal', 'terminal', 'terminal']);
});

test('a cancel ends a task in every state that is not an end [S3-6]', () => {
  const states = ['TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED'] as const;
  assert.equal(started().cancel().aggregate?.state, 'TASK_STATE_CANCELED', 'submitted');
  for (const state of states) {
    const story = started().input(supervisor(), { kind: 'status', state });
    assert.equal(story.aggregate?.state, state);
    assert.equal(story.cancel().aggregate?.state, 'TASK_STATE_CANCELED', state);
    assert.deepEqual(story.rejected, []);
  }
});

test('working again without a message makes no event [S0-23]', () => {
  const story = started()
    .input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' })
    .input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' });
  assert.deepEqual(story.events(), ['task', 'working']);
});

test('a direct answer is marked on its fact and in its view [S1-11]', () => {
  const message: Message = { messageId: 'a1', role: 'ROLE_AGENT', parts: [{ text: '42' }] };
  const end = { kind: 'status', state: 'TASK_STATE_COMPLETED', message } as const;
  const direct = started().input(supervisor(), { ...end, direct: true });
  assert.deepEqual(direct.events(), ['task', 'working', 'completed']);
  assert.equal(direct.view?.direct, true);
  assert.equal(direct.facts.filter(fact => 'direct' in fact).length, 1, 'bridged states are not marked');
  assert.equal(started().input(supervisor(), end).view?.direct, undefined);
});

test('only the root producer ends the task', () => {
  const story = started().input(agent(), { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  assert.deepEqual(story.rejected, ['not root']);
});

test('only an open task is copied forward, and the command makes no fact [S4-44]', () => {
  const copyForward = { kind: 'copy-forward', startStoredAt: 0 } as const;
  assert.equal(decide(undefined, copyForward, 0).rejected, 'unknown task');
  assert.deepEqual(decide(started().aggregate, copyForward, 0), { facts: [] });
  const ended = started().input(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  assert.equal(decide(ended.aggregate, copyForward, 0).rejected, 'terminal');
});

test('a copy fails a task in progress only if its newest fact is older than the time in the input', () => {
  const { aggregate } = started();
  const startStoredAt = aggregate!.at + 1;
  const copy = { kind: 'copy-forward', startStoredAt } as const;
  assert.equal(decide(aggregate, copy, startStoredAt).facts.length, 1);
  assert.deepEqual(decide(aggregate, { ...copy, idleSince: aggregate!.at }, startStoredAt), { facts: [] });
  assert.equal(decide(aggregate, { ...copy, idleSince: aggregate!.at + 1 }, startStoredAt).facts.length, 1);
});

test('a task in progress without a work item fails, unless the item was of an earlier turn or an ended call, or the task waits', () => {
  const gone = { kind: 'work-gone', turn: 1 } as const;
  assert.equal(decide(undefined, gone, 0).rejected, 'unknown task');
  const call = { kind: 'call', call: 'call-1-1', agent: 'argocd' } as const;
  const story = () => new Scenario().message('hello').input(supervisor(), call);
  const { aggregate } = story();
  for (const input of [gone, { ...gone, call: 'call-1-1' }]) {
    const [fact] = decide(aggregate, input, 0).facts.slice(-1);
    assert.equal(fact?.kind === 'status.changed' && fact.event.statusUpdate.metadata?.reason, INPUTS_LOST);
  }
  assert.equal(decide(aggregate, { ...gone, turn: 2 }, 0).rejected, 'stale turn');
  const ended = story().input(agent(), { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED' });
  assert.equal(decide(ended.aggregate, { ...gone, call: 'call-1-1' }, 0).rejected, 'ended call');
  const waiting = story().input(supervisor(), { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' });
  assert.equal(decide(waiting.aggregate, gone, 0).rejected, 'no change');
  const over = story().input(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  assert.equal(decide(over.aggregate, gone, 0).rejected, 'terminal');
});

test('a terminal state closes every open artifact first', () => {
  const story = started()
    .open(agent(), 'a')
    .text(agent(), 'a', 'x')
    .open(supervisor(), 'b')
    .text(supervisor(), 'b', 'y')
    .cancel();
  assert.deepEqual(story.events(), ['task', '=x', '=y', '+.', '+.', 'canceled']);
});

test('the end of a call closes the open lanes of its agent, once', () => {
  const ended = { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED' } as const;
  const story = started()
    .open(agent(), 'a')
    .text(agent(), 'a', 'x')
    .input(agent(), ended)
    .input(agent(), ended)
    .input(agent('call-9'), { ...ended, call: 'call-9' });
  assert.deepEqual(story.events(), ['task', '=x', '+.']);
  assert.equal(story.aggregate?.calls['call-1-1']?.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(story.rejected, ['ended call', 'unknown call']);
});

test('a message to a working task begins a turn: lanes of the old turn close and its workers are rejected', () => {
  const story = started().open(agent(), 'a').text(agent(), 'a', 'x').message('again', 'm2').text(agent(), 'a', 'late');
  assert.deepEqual(story.events(), ['task', '=x', '+.']);
  assert.equal(story.aggregate?.turn, 2);
  assert.deepEqual(story.rejected, ['stale turn']);
  assert.deepEqual(
    story.view?.task.history?.map(message => message.messageId),
    ['m1', 'm2'],
  );
});

test('the answer to input-required continues the task at working, with the question in the history [S3-11]', () => {
  const question = { messageId: 'q', role: 'ROLE_AGENT', parts: [{ text: 'which?' }] } as const;
  const story = started().input(supervisor(), {
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

test('the task and context ids of an agent message are replaced by the ids of the task [S1-14]', () => {
  const message = { messageId: 'x', role: 'ROLE_AGENT', parts: [], taskId: 'remote', contextId: 'remote' } as const;
  const story = started().input(supervisor(), {
    kind: 'status',
    state: 'TASK_STATE_COMPLETED',
    message: { ...message, parts: [] },
  });
  const stored = story.view?.task.status.message;
  assert.deepEqual([stored?.taskId, stored?.contextId], ['t1', 'c1']);
});

test('one lane or call above the bound fails the task; one message above the bound is rejected', () => {
  const lanes = started();
  for (let index = 0; index <= TURN_LANES_MAX; index++) lanes.open(agent(), `lane-${index}`);
  assert.equal(lanes.view?.task.status.state, 'TASK_STATE_FAILED');
  const calls = new Scenario().message('hello');
  for (let index = 0; index < TURN_CALLS_MAX; index++) calls.input(supervisor(), { kind: 'call', call: `c${index}`, agent: 'a' });
  assert.equal(calls.view?.task.status.state, 'TASK_STATE_SUBMITTED');
  calls.input(supervisor(), { kind: 'call', call: 'one more', agent: 'a' });
  assert.equal(calls.view?.task.status.state, 'TASK_STATE_FAILED');
  const turns = new Scenario();
  for (let index = 1; index <= TURNS_MAX; index++) turns.message('x', `m${index}`);
  assert.deepEqual(turns.rejected, []);
  assert.deepEqual(turns.message('x', 'one more').rejected, ['too many turns']);
});

/** Bytes of the record that holds the newest facts of a task. */
function recordBytes(story: Scenario, before: number): number {
  const record = { v: 1, facts: story.facts.slice(before), aggregate: story.aggregate, startSeq: 1, startStoredAt: Date.now() };
  return Buffer.byteLength(JSON.stringify(record));
}

test('lanes with TURN_LANES_BYTES_MAX bytes of names and metadata leave room for the end of the task; one byte more fails the task', () => {
  // Characters that take three bytes, and every bound of the aggregate reached exactly.
  const contextId = '語'.repeat(ID_CHARS_MAX);
  const owner = { tenant: 't'.repeat(128), subject: 's'.repeat(512) };
  const begin = (): Scenario => {
    const story = new Scenario('t'.repeat(TASK_ID_CHARS_MAX));
    for (let turn = 1; turn <= TURNS_MAX; turn++) {
      const messageId = `${turn}`.padEnd(ID_CHARS_MAX, '語');
      story.message('x', messageId, 'supervisor', 'caipe', { contextId, owner });
    }
    const root = supervisor(1, TURNS_MAX);
    for (let call = 0; call < TURN_CALLS_MAX; call++) story.input(root, { kind: 'call', call: `call-${call}`, agent: 'argocd' });
    return story;
  };
  const from = agent('call-0', 1, TURNS_MAX);
  const open = (story: Scenario, lane: string, description: string) => {
    story.input(from, { kind: 'open', lane, artifact: { name: 'n', description } });
    return story.text(from, lane, 'x');
  };
  const lanesBytes = (story: Scenario) => Buffer.byteLength(JSON.stringify(story.aggregate!.lanes));
  for (const lanes of [1, TURN_LANES_MAX]) {
    const filled = begin();
    for (let lane = 1; lane < lanes; lane++) open(filled, `lane-${lane}`, '語'.repeat(200));
    // In phase `open`, a lane is 4 characters shorter than when it is declared.
    const empty = begin();
    const spare = TURN_LANES_BYTES_MAX - lanesBytes(filled) - (lanesBytes(open(empty, 'last', '')) + 3);
    const edge = 'x'.repeat(spare);
    for (const [description, state] of [
      [edge, 'TASK_STATE_CANCELED'],
      [`${edge}xxxxxxxx`, 'TASK_STATE_FAILED'],
    ] as const) {
      const story = begin();
      for (let lane = 1; lane < lanes; lane++) open(story, `lane-${lane}`, '語'.repeat(200));
      let before = story.facts.length;
      open(story, 'last', description);
      if (state === 'TASK_STATE_CANCELED') {
        assert.ok(recordBytes(story, before) < 1024 * 1024);
        before = story.facts.length;
        story.cancel();
      }
      assert.equal(story.view?.task.status.state, state);
      assert.ok(recordBytes(story, before) < 1024 * 1024, `${recordBytes(story, before)} bytes`);
    }
  }
});

test('the time of facts never decreases, even when the clock of the relay is set back [S4-17]', () => {
  const clock = [5_000, 6_000.4, 2_000, 7_000];
  const story = new Scenario('t1', () => clock.shift()!).message('hello');
  story.input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' }).message('more', 'm2').cancel();
  assert.deepEqual(
    story.facts.map(fact => fact.at),
    [5_000, 6_000, 6_000, 7_000],
  );
});

test('a remote run is stored with its producer and attempt, hidden from clients, outside of the aggregate, and bounded', () => {
  const story = started();
  const { aggregate, facts } = story;
  const events = story.events().length;
  story.input(agent(), { kind: 'remote-run', run: { taskId: 'r' } });
  const { at } = story.aggregate!;
  assert.deepEqual(story.facts.at(-1), {
    kind: 'remote-run.started',
    at,
    producer: 'call-1-1',
    attempt: 1,
    run: { taskId: 'r' },
  });
  assert.equal(story.events().length, events);
  assert.deepEqual({ ...story.aggregate, at: 0 }, { ...aggregate, at: 0 });
  const stored = facts.length;
  story.input(agent(), { kind: 'remote-run', run: 'r'.repeat(REMOTE_RUN_UNITS_MAX - 2) });
  assert.equal(story.facts.length, stored + 1);
  story.input(agent(), { kind: 'remote-run', run: 'r'.repeat(REMOTE_RUN_UNITS_MAX - 1) });
  assert.deepEqual([story.facts.length, story.rejected.at(-1)], [stored + 1, 'too large']);
});

test('a step is accepted from the root producer only, hidden from clients, counted per turn, and bounded', () => {
  const story = new Scenario().message('hello');
  const before = story.events().length;
  story.input(supervisor(), { kind: 'step', step: '1', payload: { text: 'hi' } });
  assert.deepEqual(story.facts.at(-1), { kind: 'step.recorded', at: story.aggregate?.at, step: '1', payload: { text: 'hi' } });
  assert.equal(story.events().length, before);
  assert.equal(story.aggregate?.steps, 1);
  story.input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' });
  story.input(agent(), { kind: 'step', step: '2', payload: 1 });
  assert.deepEqual(story.rejected, ['not root']);
  const edge = 'x'.repeat(STEP_JSON_UNITS_MAX - 2);
  story.input(supervisor(), { kind: 'step', step: '2', payload: edge });
  assert.equal(story.aggregate?.steps, 2);
  story.message('more', 'm2');
  assert.equal(story.aggregate?.steps, undefined);
  for (let step = 0; step < TURN_STEPS_MAX; step += 1)
    story.input(supervisor(1, 2), { kind: 'step', step: String(step), payload: null });
  assert.equal(story.aggregate?.state, 'TASK_STATE_SUBMITTED');
  story.input(supervisor(1, 2), { kind: 'step', step: 'one more', payload: null });
  assert.equal(story.aggregate?.state, 'TASK_STATE_FAILED');
  const other = new Scenario().message('hello').input(supervisor(), { kind: 'step', step: '1', payload: `${edge}x` });
  assert.equal(other.aggregate?.state, 'TASK_STATE_FAILED');
});

test('a step of an agent of a call, or addressed directly, is a fact of its attempt, hidden from clients, and bounded', () => {
  const story = new Scenario().message('hello').input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' });
  const events = story.events().length;
  const { aggregate } = story;
  const stored = { kind: 'agent-step', step: 'pay', n: 1, phase: 'stored', outcome: { value: 7 } } as const;
  story.input(agent(), stored);
  const fact = { ...stored, kind: 'agent-step.recorded', at: story.aggregate!.at, producer: 'call-1-1', attempt: 1 };
  assert.deepEqual(story.facts.at(-1), fact);
  assert.equal(story.events().length, events);
  assert.deepEqual({ ...story.aggregate, at: 0 }, { ...aggregate, at: 0 });
  const value = 'x'.repeat(STEP_OUTCOME_BYTES_MAX - '{"value":""}'.length);
  const facts = story.facts.length;
  story.input(agent(), { ...stored, step: 's'.repeat(STEP_NAME_UNITS_MAX), outcome: { value } });
  assert.equal(story.facts.length, facts + 1);
  story.input(agent(), { ...stored, outcome: { value: `${value}x` } });
  story.input(agent(), { ...stored, step: 's'.repeat(STEP_NAME_UNITS_MAX + 1) });
  assert.deepEqual([story.facts.length, story.rejected.slice(-2)], [facts + 1, ['too large', 'too large']]);
});

test('the supervisor may end the call of a lost agent, and later inputs of that agent are rejected', () => {
  const story = new Scenario().message('hello').input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' });
  story.open(agent(), 'call-1-1/answer').text(agent(), 'call-1-1/answer', 'so far');
  story.input(supervisor(), { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_FAILED', reason: 'gone', retryable: true });
  assert.equal(story.aggregate?.calls['call-1-1']?.state, 'TASK_STATE_FAILED');
  const facts = story.facts.length;
  story.open(agent('call-1-1', 2), 'call-1-1/answer').text(agent('call-1-1', 2), 'call-1-1/answer', 'late');
  story.input(agent('call-1-1', 2), { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED' });
  assert.equal(story.facts.length, facts);
  story.input(supervisor(), { kind: 'call', call: 'call-1-2', agent: 'files' });
  story.input(agent('call-1-1'), { kind: 'ended', call: 'call-1-2', state: 'TASK_STATE_COMPLETED' });
  assert.equal(story.aggregate?.calls['call-1-2']?.state, undefined);
});

test('an agent whose call has ended writes nothing more, neither itself nor when the supervisor repeats the end', () => {
  const ended = { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED' } as const;
  const story = started().input(agent(), ended);
  const facts = story.facts.length;
  story.open(agent(), 'late').input(supervisor(), ended).when({ kind: 'lost', from: agent() });
  assert.deepEqual(story.rejected, ['ended call', 'ended call', 'ended call']);
  assert.equal(story.facts.length, facts);
});

test('a call that waits for input can no longer report a status of the task', () => {
  const message: Message = { messageId: 'p', role: 'ROLE_AGENT', parts: [{ text: 'log in' }] };
  const story = started().input(agent(), { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_INPUT_REQUIRED' });
  story.input(agent(), { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message });
  assert.deepEqual([story.events(), story.rejected], [['task'], ['not root']]);
});

test('a called agent needs a message to report that it waits for credentials', () => {
  const message: Message = { messageId: 'p', role: 'ROLE_AGENT', parts: [{ text: 'log in' }] };
  const wait = { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED' } as const;
  const story = started()
    .input(agent(), wait)
    .input(agent(), { ...wait, message });
  assert.deepEqual([story.events(), story.rejected], [['task', 'working', 'auth_required'], ['not root']]);
});

test('once a producer has written, its earlier attempts and other work items are rejected', () => {
  const story = started();
  const written = { ...agent('call-1-1', 2), item: 7 };
  const { aggregate } = story.open(written, 'a');
  story.aggregate = { ...aggregate!, producers: { 'call-1-1': { item: 7, attempt: 2, n: 1 } } };
  const other = { ...written, item: 8 };
  story
    .open({ ...written, attempt: 1 }, 'b')
    .open(other, 'b')
    .text(other, 'a', 'x')
    .text(written, 'a', 'y');
  assert.deepEqual(
    [story.events(), story.rejected],
    [
      ['task', '=y'],
      ['stale attempt', 'other item', 'other item'],
    ],
  );
});

test('a lane that its attempt opens again is replaced by the next chunk, and closes with a chunk that appends', () => {
  const story = started().open(agent(), 'a', separate).text(agent(), 'a', 'one').open(agent(), 'a', separate);
  story.text(agent(), 'a', 'two').text(agent(), 'a', ' three', true);
  assert.deepEqual([story.events(), story.rejected], [['task', '=one', '=two', '+ three.'], []]);
});

test('a status of a called agent passes only where its call was recorded with statusPasses', () => {
  const message: Message = { messageId: 'p', role: 'ROLE_AGENT', parts: [{ text: 'half of it' }] };
  const progress = { kind: 'status', state: 'TASK_STATE_WORKING', message } as const;
  const reported = started().input(agent(), progress);
  assert.deepEqual([reported.events(), reported.rejected], [['task'], ['not root']]);
  const passing = new Scenario()
    .message('hello')
    .input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd', statusPasses: true })
    .input(agent(), progress);
  assert.deepEqual([passing.events(), passing.rejected], [['task', 'working'], []]);
  const begun = new Scenario()
    .message('hello')
    .input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd', statusPasses: true })
    .input(agent(), { kind: 'status', state: 'TASK_STATE_WORKING' })
    .input(agent(), { kind: 'status', state: 'TASK_STATE_WORKING' })
    .open(agent(), 'a')
    .text(agent(), 'a', 'one');
  assert.deepEqual([begun.events(), begun.rejected], [['task', 'working', '=one'], ['no change']]);
});

test('a turn that waits for a slot keeps its state, shows how many are ahead, and its next status takes the place of the notice', () => {
  const place = { role: 'supervisor', ahead: 3 } as const;
  const wait = { kind: 'queued', turn: 1, message: queueNotice('q-3', place) } as const;
  assert.equal(decide(undefined, wait, 0).rejected, 'unknown task');
  const story = new Scenario().message('hello').when(wait);
  assert.equal(story.view?.task.status.state, 'TASK_STATE_SUBMITTED');
  assert.match(textOf(story.view!.task.status.message!.parts), /about 3 requests are ahead/);
  assert.equal(decide(story.aggregate, { ...wait, turn: 2 }, 0).rejected, 'stale turn');
  story.input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' });
  assert.equal(story.view?.task.status.message, undefined);
  assert.equal(story.aggregate?.queued, undefined);
  const begun = { ...story.aggregate!, producers: { supervisor: { attempt: 1, n: 1 } } };
  assert.equal(decide(begun, wait, 0).rejected, 'no change', 'the turn has begun');
  const asks = () => new Scenario().message('hello').input(supervisor(), { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' });
  assert.equal(decide(asks().aggregate, wait, 0).rejected, 'no change', 'the task waits for its client');
  const later = asks()
    .message('answer', 'm2')
    .when({ ...wait, turn: 2 });
  assert.equal(later.view?.task.status.state, 'TASK_STATE_WORKING');
  later.input({ ...supervisor(), turn: 2 }, { kind: 'status', state: 'TASK_STATE_WORKING' });
  assert.equal(later.view?.task.status.message, undefined, 'working after working replaces the notice');
  later.input({ ...supervisor(), turn: 2 }, { kind: 'status', state: 'TASK_STATE_WORKING' });
  assert.equal(later.rejected.at(-1), 'no change', 'and only the notice');
});

test('only the root producer reports that a call waits, and ends it without a message', () => {
  const message = queueNotice('q-0', { role: 'agent.argocd', ahead: 0 });
  const story = started().input(agent(), { kind: 'queued', message });
  assert.equal(story.rejected.at(-1), 'not root');
  story.input(supervisor(), { kind: 'queued' });
  assert.equal(story.rejected.at(-1), 'no change');
  story.input(supervisor(), { kind: 'queued', message });
  assert.equal(story.aggregate?.queued, true);
  story.input(supervisor(), { kind: 'queued' });
  assert.equal(story.aggregate?.queued, undefined);
  assert.equal(story.view?.task.status.message, undefined);
});

test('a queue notice never joins the history', () => {
  const message = queueNotice('q-0', { role: 'supervisor', ahead: 0 });
  const story = new Scenario().message('hello').when({ kind: 'queued', turn: 1, message }).message('more', 'm2');
  assert.deepEqual(
    story.view?.task.history?.map(({ messageId }) => messageId),
    ['m1', 'm2'],
  );
});

test('a message with a condition is accepted only at its generation, and the task leaves that generation', () => {
  const conditional = (ifGeneration: number) => ({ ifGeneration, continues: true as const });
  const waiting = () =>
    started().input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' }).input(supervisor(), {
      kind: 'status',
      state: 'TASK_STATE_INPUT_REQUIRED',
    });
  const working = () => started().input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' });
  const streaming = () => working().open(supervisor(), 'a').text(supervisor(), 'a', 'x');
  const cases: [string, () => Scenario, string[]][] = [
    ['input required', waiting, ['working']],
    ['working', working, ['working']],
    ['submitted', started, ['submitted']],
    ['with an open lane', streaming, ['+.']],
  ];
  for (const [name, story, events] of cases) {
    const { generation } = story().aggregate!;
    const before = story().events().length;
    const accepted = story().message('first', 'm2', 'supervisor', 'caipe', conditional(generation));
    assert.deepEqual([accepted.rejected, accepted.aggregate?.turn], [[], 2], name);
    assert.deepEqual(accepted.events().slice(before), events, name);
    accepted.message('second', 'm3', 'supervisor', 'caipe', conditional(generation));
    assert.deepEqual([accepted.rejected, accepted.aggregate?.turn], [['other generation'], 2], name);
    // A retry of the accepted message is a duplicate, not a mismatch.
    assert.deepEqual(
      accepted.message('first', 'm2', 'supervisor', 'caipe', conditional(generation)).rejected.at(-1),
      'duplicate message',
    );
    for (const other of [generation - 1, generation + 1, 0])
      assert.deepEqual(
        story().message('late', 'm2', 'supervisor', 'caipe', conditional(other)).rejected,
        ['other generation'],
        name,
      );
  }
  assert.deepEqual(new Scenario().message('hello', 'm1', 'supervisor', 'caipe', { ifGeneration: 7 }).events(), ['task']);
});

test('an answer to the question of a turn is accepted only while the task waits for input in this turn', () => {
  const answers = (ifTurn: number) => ({ continues: true, ifTurn }) as const;
  const asked = () =>
    started()
      .input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' })
      .input(supervisor(), { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' });
  const accepted = asked().message('yes', 'm2', 'supervisor', 'caipe', answers(1));
  assert.deepEqual([accepted.rejected, accepted.aggregate?.turn], [[], 2]);
  accepted.message('yes', 'm3', 'supervisor', 'caipe', answers(1));
  assert.deepEqual([accepted.rejected, accepted.aggregate?.turn], [['question answered'], 2]);
  assert.deepEqual(asked().message('yes', 'm2', 'supervisor', 'caipe', answers(2)).rejected, ['question answered']);
  assert.deepEqual(started().message('yes', 'm2', 'supervisor', 'caipe', answers(1)).rejected, ['question answered']);
});

test('a message without a condition to a task that works makes no event', () => {
  const story = started().input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' });
  const before = story.events().length;
  assert.deepEqual(story.message('more', 'm2').events().slice(before), []);
});

describe('calls that wait for credentials', () => {
  const ask = (text: string): StatusInput & { message: Message } => ({
    kind: 'status',
    state: 'TASK_STATE_AUTH_REQUIRED',
    resume: `resume of ${text}`,
    message: { messageId: `ask-${text}`, role: 'ROLE_AGENT', parts: [{ text }] },
  });
  const notice = { kind: 'status', state: 'TASK_STATE_WORKING' } as const;
  const works = { ...notice, message: { messageId: 'n', role: 'ROLE_AGENT' as const, parts: [{ text: 'Calling forecast' }] } };
  const [github, jira, weather] = ['call-1-1', 'call-1-2', 'call-1-3'].map(call => agent(call)) as [Producer, Producer, Producer];
  const calls = () => {
    const story = new Scenario().message('hello').input(supervisor(), notice);
    for (const { id } of [github, jira, weather])
      story.input(supervisor(), { kind: 'call', call: id, agent: 'argocd', statusPasses: true });
    return story;
  };
  const shownText = ({ view }: Scenario) => textOf(view!.task.status.message?.parts ?? []);
  const ended = (call: string, state: 'TASK_STATE_FAILED' | 'TASK_STATE_AUTH_REQUIRED' = 'TASK_STATE_FAILED') =>
    ({ kind: 'ended', call, state }) as const;

  test('a status of another agent or of the supervisor does not hide that one waits, and its deadline holds', () => {
    const story = calls().input(github, ask('github'));
    const { authRequest } = story.aggregate!;
    story.input(weather, works).input(weather, notice).input(supervisor(), notice);
    assert.deepEqual(story.rejected, ['other call waits', 'other call waits', 'other call waits']);
    assert.deepEqual([story.aggregate!.state, shownText(story)], ['TASK_STATE_AUTH_REQUIRED', 'github']);
    story.when({ kind: 'auth-timeout', request: authRequest!.n });
    assert.equal(story.aggregate!.state, 'TASK_STATE_FAILED');
  });

  test('the first of two that continues leaves the request of the other with its deadline and resume, the second ends the wait', () => {
    for (const [first, second, left] of [
      [github, jira, 'jira'],
      [jira, github, 'github'],
    ] as const) {
      const story = calls().input(github, ask('github')).input(jira, ask('jira'));
      const { at } = story.aggregate!.authRequest!;
      story.input(first, notice);
      assert.deepEqual([story.aggregate!.state, shownText(story)], ['TASK_STATE_AUTH_REQUIRED', left]);
      assert.equal(story.aggregate!.authRequest!.at, at, 'its deadline');
      const newest = story.facts.findLast(fact => fact.kind === 'status.changed')!;
      assert.deepEqual([newest.call, newest.resume], [second.id, `resume of ${left}`]);
      story.input(first, notice);
      assert.equal(story.rejected.length, 1, 'it waits no more');
      story.input(second, notice).input(weather, { ...works });
      assert.deepEqual([story.aggregate!.state, story.rejected.length], ['TASK_STATE_WORKING', 1]);
      assert.ok(Object.values(story.aggregate!.calls).every(({ authRequest }) => authRequest === undefined));
    }
  });

  test('the end of a call that waits ends the wait, unless another call waits or its client must answer', () => {
    const one = calls().input(github, ask('github')).input(supervisor(), ended(github.id));
    assert.deepEqual([one.aggregate!.state, shownText(one)], ['TASK_STATE_WORKING', '']);
    const two = calls().input(github, ask('github')).input(jira, ask('jira')).input(supervisor(), ended(jira.id));
    assert.deepEqual([two.aggregate!.state, shownText(two)], ['TASK_STATE_AUTH_REQUIRED', 'github']);
    const other = calls().input(github, ask('github')).input(weather, ended(weather.id));
    assert.deepEqual([other.aggregate!.state, shownText(other)], ['TASK_STATE_AUTH_REQUIRED', 'github']);
    const asks = calls().input(github, ask('github')).input(github, ended(github.id, 'TASK_STATE_AUTH_REQUIRED'));
    assert.equal(asks.aggregate!.state, 'TASK_STATE_AUTH_REQUIRED');
  });

  test('an aggregate of a version that did not note which calls wait lets any status pass', () => {
    const story = calls().input(github, ask('github'));
    const { authRequest: _, ...call } = story.aggregate!.calls[github.id]!;
    story.aggregate = { ...story.aggregate!, calls: { ...story.aggregate!.calls, [github.id]: call } };
    story.input(weather, works);
    assert.deepEqual([story.aggregate.state, story.rejected], ['TASK_STATE_WORKING', []]);
  });

  test('a request up to the limit is kept with its call, a larger one is asked for again without its message', () => {
    for (const [more, left] of [
      [0, CALL_AUTH_UNITS_MAX],
      [1, 0],
    ] as const) {
      const { resume: _, ...large } = ask('');
      const withIds = { ...large.message, taskId: 't1', contextId: 'c1' };
      const room = CALL_AUTH_UNITS_MAX - JSON.stringify({ message: withIds }).length;
      const message = { ...large.message, parts: [{ text: 'x'.repeat(room + more) }] };
      const story = calls()
        .input(github, { ...large, message })
        .input(jira, ask('jira'))
        .input(jira, notice);
      assert.equal(JSON.stringify(story.aggregate!.calls[github.id]!.authRequest).length, left || 2);
      assert.equal(shownText(story).length, left && room);
    }
  });
});
