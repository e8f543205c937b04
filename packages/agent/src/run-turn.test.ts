import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ArtifactKind, isVisible } from '@hopline/events';
import { Superseded } from '@hopline/log';
import { until, untilTick } from '../../../test/kit/until.ts';
import type { Agent, AgentEvent } from './agent.ts';
import type { AttemptFailed } from './attempt-failed.ts';
import { EVENTS_AT_ONCE_MAX, TURN_WAITING_BYTES_MAX } from './limits.ts';
import { runTurn } from './run-turn.ts';
import { ANSWER, done, message, quiet, run, scripted, TaskLog, text } from './task-log.test-kit.ts';

test('in profile caipe a called agent answers in the lane that its supervisor names [S0-17 S0-19 S0-30]', async () => {
  const task = await TaskLog.create('caipe');
  const outcome = await run(task, scripted([text('Here', 'a'), text(' is', 'b'), text(' ', 'c'), text('\n', 'd'), done]));
  assert.equal(outcome?.state, 'TASK_STATE_COMPLETED');
  const fold = await task.fold();
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.textOf('streaming_result'), 'Here is \n');
  const [artifact, ...more] = fold.artifacts.values();
  assert.equal(artifact?.description, ANSWER.description);
  assert.equal(artifact?.closed, true);
  assert.equal(more.length, 0);
  const ended = task.ended();
  assert.equal(ended?.state, 'TASK_STATE_COMPLETED');
  assert.equal(ended?.message, undefined);
  const texts = (await task.inputs()).filter(input => input.kind === 'text');
  assert.deepEqual(
    texts.flatMap(input => input.ids),
    ['a', 'b', 'c', 'd'],
  );
});

test('the first text of a lane is appended at once, in the same record as the lane, before any timer [S0-38]', async t => {
  const task = await TaskLog.create('caipe');
  const stop = new AbortController();
  const agent = scripted(async function* () {
    yield text('Here');
    yield await new Promise<AgentEvent>((_resolve, reject) => {
      stop.signal.addEventListener('abort', () => reject(stop.signal.reason));
    });
  });
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const outcome = run(task, agent, task.job(), stop.signal).catch(() => undefined);
  await untilTick(async () => (await task.inputs()).length > 0);
  const kinds = (await task.inputs()).map(({ kind }) => kind);
  stop.abort();
  await outcome;
  assert.deepEqual(kinds, ['open', 'text']);
});

test('the end of a run that the next attempt canceled is not the end of the call', async () => {
  const canceled = {
    type: 'failed',
    state: 'TASK_STATE_CANCELED',
    reason: 'the agent canceled its task',
    retryable: false,
  } as const;
  for (const isTakenOver of [true, false]) {
    const task = await TaskLog.create('caipe');
    const running = run(task, scripted([text('Here'), canceled]), { ...task.job(), isTakenOver: async () => isTakenOver });
    if (isTakenOver) await assert.rejects(running, Superseded);
    else assert.equal((await running)?.state, 'TASK_STATE_CANCELED');
    const ends = (await task.inputs()).filter(({ kind }) => kind === 'ended');
    assert.equal(ends.length, isTakenOver ? 0 : 1);
  }
});

test('an agent that never waits leaves the process time for other work', async () => {
  const task = await TaskLog.create('caipe');
  let turns = 0;
  let isOver = false;
  const countTurn = () => {
    turns += 1;
    if (!isOver) setImmediate(countTurn);
  };
  setImmediate(countTurn);
  let turnsOfBurst = 0;
  const agent = scripted(async function* () {
    yield text('a');
    const before = turns;
    for (let index = 0; index < 4 * EVENTS_AT_ONCE_MAX; index += 1) yield text('a');
    turnsOfBurst = turns - before;
    yield done;
  });
  await run(task, agent);
  isOver = true;
  assert.ok(turnsOfBurst >= 3, `${turnsOfBurst} turns of the event loop`);
});

test('tool calls appear between the texts in the order of their events, and each end belongs to its call [S2-1 S2-7]', async () => {
  const task = await TaskLog.create('caipe');
  const tool = (phase: 'start' | 'end', callId: string, failed?: boolean): AgentEvent => ({
    type: 'tool',
    phase,
    callId,
    tool: 'version_service__version',
    ...(failed && { failed }),
  });
  await run(
    task,
    scripted([tool('start', '1'), tool('start', '2'), text('a'), tool('end', '2', true), tool('end', '1'), text('b'), done]),
  );
  const kinds = (await task.inputs()).map(input =>
    input.kind === 'artifact' ? `${[...(input.parts[0]?.text ?? '')][0]} ${input.artifact.metadata?.toolCallId}` : input.kind,
  );
  assert.deepEqual(kinds, [
    '🔧 call-1-1/1',
    '🔧 call-1-1/2',
    'open',
    'text',
    '❌ call-1-1/2',
    '✅ call-1-1/1',
    'text',
    'close',
    'ended',
  ]);
  const fold = await task.fold();
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.textOf('streaming_result'), 'ab');
});

test('a tool’s start, the model’s tokens and the tool’s end each have their artifact [S2-31]', async () => {
  const task = await TaskLog.create('caipe');
  const tool = { type: 'tool', callId: '1', tool: 'version_service__version' } as const;
  await run(task, scripted([{ ...tool, phase: 'start' }, text('tok'), text('en'), { ...tool, phase: 'end' }, done]));
  const fold = await task.fold();
  assert.deepEqual(
    [...fold.artifacts.values()].map(artifact => [artifact.name, artifact.text]),
    [
      ['tool_notification_start', '🔧 Argocd: Calling tool: Version_Service__Version\n'],
      ['streaming_result', 'token'],
      ['tool_notification_end', '✅ Argocd: Tool Version_Service__Version completed\n'],
    ],
  );
});

test('a tool call that the agent leaves open ends with its turn [S0-15]', async () => {
  for (const [last, glyph] of [
    [done, '✅'],
    [{ type: 'failed', reason: 'x', retryable: false }, '❌'],
  ] as const) {
    const task = await TaskLog.create('caipe');
    await run(task, scripted([{ type: 'tool', phase: 'start', callId: '1', tool: 'x' }, last]));
    const fold = await task.fold();
    assert.ok(fold.textOf('tool_notification_end').startsWith(glyph));
  }
});

test('a snapshot may equal the answer, continue it or replace it [S2-2]', async () => {
  const task = await TaskLog.create('caipe');
  const events: AgentEvent[] = [
    text('one'),
    ...['one', 'one two', 'three'].map(content => ({ type: 'snapshot' as const, text: content })),
    done,
  ];
  await run(task, scripted(events));
  const kinds = (await task.inputs()).flatMap(input => (input.kind === 'text' ? input.tokens : [input.kind]));
  assert.deepEqual(kinds, ['open', 'one', ' two', 'open', 'three', 'close', 'ended']);
  const fold = await task.fold();
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.textOf('streaming_result'), 'three');
});

const textArtifact = (name: string, content: string): AgentEvent => ({
  type: 'artifact',
  artifact: { artifactId: name, name, parts: [{ text: content }] },
  append: false,
  lastChunk: true,
});

test('a result that repeats the stream, as an artifact, a message or both, is shown once [S2-2]', async () => {
  const task = await TaskLog.create('caipe');
  const script = [text('Hel'), text('lo'), textArtifact('result', 'Hello'), { type: 'done', message: message('Hello') } as const];
  await run(task, { ...scripted(script), repeatsText: true });
  const fold = await task.fold();
  assert.equal(fold.textOf('streaming_result'), 'Hello');
  assert.equal(fold.artifacts.size, 1);
  assert.equal(task.ended()?.message, undefined, 'the supervisor gets the text once (S2-11)');
});

test('an artifact that repeats the whole text of one of several streams adds nothing', async () => {
  const task = await TaskLog.create('caipe');
  const streamed = (stream: string, content: string): AgentEvent => ({ type: 'text', stream, text: content });
  const script = [streamed('a', 'alpha'), streamed('b', 'beta'), textArtifact('result', 'beta')];
  await run(task, { ...scripted(script), repeatsText: true });
  const fold = await task.fold();
  assert.deepEqual(
    [...fold.artifacts.values()].map(artifact => artifact.text),
    ['alpha', 'beta'],
  );
});

test('without repeatsText the agent’s events are shown unchanged: an artifact with equal text adds to the answer, and a final result replaces it', async () => {
  const answerOf = async (...script: AgentEvent[]) => {
    const task = await TaskLog.create('caipe');
    await run(task, scripted(script));
    const fold = await task.fold();
    assert.deepEqual(fold.violations, []);
    return [fold.textOf('streaming_result'), task.ended()?.message?.parts[0]?.text];
  };
  const ending = (content: string): AgentEvent => ({ type: 'done', message: message(content) });
  const words = [text('Hel'), text('lo')];
  assert.deepEqual(await answerOf(...words, textArtifact('result', 'Hello')), ['HelloHello', undefined]);
  assert.deepEqual(await answerOf(...words, textArtifact('final_result', 'Hello')), ['Hello', undefined]);
  assert.deepEqual(await answerOf(...words, { type: 'snapshot', text: 'Hello!' }), ['Hello!', undefined]);
  assert.deepEqual(await answerOf(...words, ending('Hello')), ['Hello', undefined]);
  assert.deepEqual(await answerOf(...words, ending('Good day')), ['Good day', undefined]);
  assert.deepEqual(await answerOf(...words, ending('Hi')), ['Hello', 'Hi']);
  assert.deepEqual(await answerOf(...words, textArtifact('result', '!'), ending('Good day')), ['Hello!', 'Good day']);
});

test('a last message without other text is the answer; otherwise it stays a message', async () => {
  const only = await TaskLog.create('caipe');
  await run(only, scripted([{ type: 'done', message: message('42') }]));
  assert.equal((await only.fold()).textOf('streaming_result'), '42');
  const farewell = await TaskLog.create('caipe');
  await run(farewell, scripted([text('The answer is 42.'), { type: 'done', message: message('Done.') }]));
  assert.equal((await farewell.fold()).textOf('streaming_result'), 'The answer is 42.');
  assert.equal(farewell.ended()?.message?.parts[0]?.text, 'Done.');
});

test('a message that is the whole answer becomes the supervisor’s answer, and stays a message if the agent’s own messages pass [S1-11]', async () => {
  const parts = [{ text: '42' }, { data: { n: 1 } }];
  const direct: AgentEvent = { type: 'done', message: { ...message('42'), parts }, direct: true };
  const caipe = await TaskLog.create('caipe');
  await run(caipe, scripted([direct]));
  const fold = await caipe.fold();
  assert.equal(fold.textOf('streaming_result'), '42');
  assert.deepEqual(
    [...fold.artifacts.values()].flatMap(artifact => artifact.parts),
    parts,
  );
  assert.deepEqual([caipe.ended()?.message, caipe.ended()?.direct], [undefined, undefined]);
  const transparent = await TaskLog.create('transparent');
  await run(transparent, scripted([direct]));
  assert.equal((await transparent.fold()).artifacts.size, 0);
  assert.deepEqual([transparent.ended()?.message?.parts, transparent.ended()?.direct], [parts, true]);
  const root = await TaskLog.create('direct');
  await run(root, scripted([direct]));
  const end = (await root.inputs()).at(-1);
  assert(end?.kind === 'status');
  assert.deepEqual([end.message?.parts, end.direct], [parts, true]);
});

test('an event that a relay could not read fails its turn; earlier events are stored, and nothing of this one', async () => {
  for (const mode of ['caipe', 'direct'] as const) {
    const task = await TaskLog.create(mode);
    const parts = [{ raw: Buffer.from('x') as never }];
    const bad: AgentEvent = { type: 'artifact', artifact: { artifactId: 'x', parts }, append: false, lastChunk: true };
    const outcome = await run(task, scripted([text('before'), bad, text('after'), done]));
    assert.deepEqual([outcome?.state, outcome?.reason], ['TASK_STATE_FAILED', 'the agent sent an event that cannot be read']);
    const fold = await task.fold();
    assert.equal(fold.textOf(mode === 'caipe' ? 'streaming_result' : 'response'), 'before');
    assert.ok((await task.inputs()).every(({ kind }) => kind !== 'artifact' && kind !== 'malformed'));
  }
});

test('parts other than text are separate artifacts with their source [S2-37]', async () => {
  const task = await TaskLog.create('caipe');
  const parts = [{ text: 'see ' }, { data: { n: 1 } }];
  await run(
    task,
    scripted([{ type: 'artifact', artifact: { artifactId: 'x', name: 'chart', parts }, append: false, lastChunk: true }, done]),
  );
  const fold = await task.fold();
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.textOf('streaming_result'), 'see ');
  const chart = [...fold.artifacts.values()].find(artifact => artifact.name === 'chart');
  assert.deepEqual(chart?.parts, [{ data: { n: 1 } }]);
  assert.deepEqual(chart?.metadata, { sourceAgent: 'argocd' });
  assert.notEqual(chart?.artifactId, 'x', 'S0-34 no id of the agent reaches the client');
});

test('a task that is forwarded to one agent is working when the agent reports it or sends its first output, and not before', async () => {
  const inputsOf = async (mode: 'transparent' | 'caipe', events: AgentEvent[], reportsWork = true) => {
    const task = await TaskLog.create(mode);
    await run(task, { ...scripted(events), ...(reportsWork && { reportsWork }) });
    await task.fold();
    return (await task.inputs()).map(input => (input.kind === 'status' ? input.state : input.kind));
  };
  const text: AgentEvent = { type: 'text', text: 'a' };
  const whole = ['TASK_STATE_WORKING', 'open', 'text', 'close', 'ended'];
  assert.deepEqual(await inputsOf('transparent', [{ type: 'working' }, text, done]), whole);
  assert.deepEqual(await inputsOf('transparent', [text, done]), whole);
  const line: AgentEvent = { type: 'progress', message: { messageId: 'p', role: 'ROLE_AGENT', parts: [{ text: 'looking' }] } };
  assert.deepEqual(await inputsOf('transparent', [line, done]), ['TASK_STATE_WORKING', 'ended']);
  assert.deepEqual(await inputsOf('transparent', [done]), ['ended']);
  assert.deepEqual(await inputsOf('transparent', [done], false), ['TASK_STATE_WORKING', 'ended']);
  assert.deepEqual(await inputsOf('caipe', [{ type: 'working' }, text, done]), whole.slice(1));
});

for (const mode of ['transparent', 'direct'] as const) {
  test(`${mode}: the agent's own artifacts pass as they are [S1-29]`, async () => {
    const task = await TaskLog.create(mode);
    const header = {
      artifactId: 'a1',
      name: 'report',
      description: 'The report',
      metadata: { k: 1 },
      extensions: ['https://x.test/e'],
    };
    const chunk = (content: string, append: boolean, lastChunk: boolean): AgentEvent => ({
      type: 'artifact',
      artifact: { ...header, parts: [{ text: content }] },
      append,
      lastChunk,
    });
    const data: AgentEvent = {
      type: 'artifact',
      artifact: { artifactId: 'a2', name: 'data', parts: [{ data: [1, 2] }, { text: 'x', mediaType: 'text/csv' }] },
      append: false,
      lastChunk: true,
    };
    const late: AgentEvent = {
      type: 'artifact',
      artifact: { artifactId: 'a3', parts: [{ text: 'never opened' }] },
      append: true,
      lastChunk: false,
    };
    await run(
      task,
      scripted([chunk('one', false, false), chunk(' two', true, false), data, chunk('', true, true), late, text('loose'), done]),
    );
    const fold = await task.fold();
    assert.deepEqual(fold.violations, []);
    const shown = [...fold.artifacts.values()];
    assert.deepEqual(
      shown.map(artifact => [artifact.name, artifact.text, artifact.closed]),
      [
        ['report', 'one two', true],
        ['data', 'x', true],
        [undefined, 'never opened', true],
        ['response', 'loose', true],
      ],
    );
    const { artifactId: _id, ...shownHeader } = header;
    assert.deepEqual(
      { ...shownHeader },
      {
        name: shown[0]?.name,
        description: shown[0]?.description,
        metadata: shown[0]?.metadata,
        extensions: shown[0]?.extensions,
      },
    );
    assert.deepEqual(shown[1]?.parts, [{ data: [1, 2] }, { text: 'x', mediaType: 'text/csv' }]);
  });

  test(`${mode}: the message at the end is the agent's own`, async () => {
    const task = await TaskLog.create(mode);
    await run(task, scripted([text('a'), { type: 'done', message: message('Done.') }]));
    const fold = await task.fold();
    const ending = mode === 'direct' ? fold.task?.status.message : task.ended()?.message;
    assert.equal(ending?.parts[0]?.text, 'Done.');
    assert.equal(fold.textOf('response'), 'a');
  });
}

test('a directly addressed agent sets the states of its task itself [S0-46]', async () => {
  const task = await TaskLog.create('direct');
  await run(task, scripted([text('a'), { type: 'progress', message: message('half way') }, done]));
  const states = (await task.inputs()).flatMap(input =>
    input.kind === 'status' ? [[input.state, input.message?.parts[0]?.text]] : [],
  );
  assert.deepEqual(states, [
    ['TASK_STATE_WORKING', undefined],
    ['TASK_STATE_WORKING', 'half way'],
    ['TASK_STATE_COMPLETED', undefined],
  ]);
  const fold = await task.fold();
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
});

test('progress of a called agent is visible but not part of the answer [S4-21]', async () => {
  const task = await TaskLog.create('caipe');
  const progress = ['10 %', '90 %'].map(content => ({ type: 'progress' as const, message: message(content) }));
  await run(task, scripted([...progress, text('answer'), done]));
  const fold = await task.fold();
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.textOf('streaming_result'), 'answer');
  const shown = [...fold.artifacts.values()].filter(artifact => artifact.name === 'progress');
  assert.deepEqual(
    shown.map(artifact => [artifact.text, artifact.closed, artifact.metadata?.sourceAgent]),
    [['90 %', true, 'argocd']],
  );
});

test('input required: the question and the adapter’s resume value are stored [S4-26]', async () => {
  const event: AgentEvent = {
    type: 'interrupted',
    state: 'TASK_STATE_INPUT_REQUIRED',
    message: message('which one?'),
    resume: { taskId: 'f1' },
  };
  const called = await TaskLog.create('caipe');
  await run(called, scripted([text('Hm. '), event]));
  await called.fold();
  assert.equal(called.ended()?.state, 'TASK_STATE_INPUT_REQUIRED');
  assert.deepEqual(called.ended()?.resume, { taskId: 'f1' });
  const direct = await TaskLog.create('direct');
  const outcome = await run(direct, scripted([text('Hm. '), event]));
  const fold = await direct.fold();
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.task?.status.message?.parts[0]?.text, 'which one?');
  assert.equal([...fold.artifacts.values()][0]?.closed, true);
  assert.deepEqual(outcome?.resume, { taskId: 'f1' });
  const shown = direct.facts.filter(isVisible).map(fact => fact.event);
  assert.ok(!JSON.stringify(shown).includes('f1'), 'never shown');
  assert.deepEqual(direct.facts.find(fact => 'resume' in fact)?.kind, 'status.changed', 'kept in the log');
});

test('a failure keeps its reason, its message, and whether a retry may succeed [S0-26]', async () => {
  const task = await TaskLog.create('caipe');
  await run(task, scripted([text('part'), { type: 'failed', reason: 'agent down', retryable: true, message: message('sorry') }]));
  const fold = await task.fold();
  assert.equal(fold.textOf('streaming_result'), 'part');
  const { state, reason, retryable, message: ending } = task.ended()!;
  assert.deepEqual(
    { state, reason, retryable, text: ending?.parts[0]?.text },
    { state: 'TASK_STATE_FAILED', reason: 'agent down', retryable: true, text: 'sorry' },
  );
});

const authRequired: AgentEvent = { type: 'auth-required', message: message('log in first'), resume: { taskId: 'f1' } };
const statesOf = (task: TaskLog) =>
  task.facts.flatMap(fact =>
    fact.kind === 'status.changed' ? [fact.event.statusUpdate.status.state.slice('TASK_STATE_'.length)] : [],
  );

test('an agent that needs credentials continues by itself when it has them, called or addressed directly [S3-5]', async () => {
  for (const mode of ['caipe', 'direct'] as const) {
    const task = await TaskLog.create(mode);
    await run(task, scripted([text('a'), authRequired, text('b'), done]));
    const fold = await task.fold();
    assert.deepEqual(fold.violations, []);
    assert.deepEqual(statesOf(task).slice(0, 3), ['WORKING', 'AUTH_REQUIRED', 'WORKING'], mode);
    assert.equal([...fold.artifacts.values()].map(artifact => artifact.text).join(''), 'ab');
  }
});

test('a process that stops leaves the wait for credentials to the next turn [S3-5]', async () => {
  for (const mode of ['caipe', 'direct'] as const) {
    const task = await TaskLog.create(mode);
    const stop = new AbortController();
    const agent = scripted(async function* () {
      yield authRequired;
      stop.abort();
      await new Promise(() => {});
    });
    const outcome = await runTurn({ log: task.log, agent, name: 'argocd', logger: quiet, signal: stop.signal }, task.job());
    await task.fold();
    assert.equal(outcome?.state, 'TASK_STATE_AUTH_REQUIRED');
    assert.deepEqual(statesOf(task), ['WORKING', 'AUTH_REQUIRED']);
    const left = task.facts.findLast(fact => 'resume' in fact);
    assert.deepEqual(left?.kind, mode === 'caipe' ? 'call.ended' : 'status.changed');
  }
});

test('a request for credentials that no relay shows is abandoned only while the agent waits [S3-5]', async t => {
  const endShownMsMax = 77_777;
  let late = Promise.withResolvers<void>();
  const { setTimeout: start } = globalThis;
  t.mock.method(globalThis, 'setTimeout', (onTime: () => void, ms?: number) => {
    const timer = start(onTime, ms);
    if (ms === endShownMsMax) void late.promise.then(onTime);
    return timer;
  });
  const turns = async () => {
    for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
  };
  for (const mode of ['caipe', 'direct'] as const) {
    for (const shown of ['never', 'in time', 'after the credentials'] as const) {
      const task = await TaskLog.create(mode);
      late = Promise.withResolvers();
      const [asked, credentials] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const agent = scripted(async function* ({ signal }) {
        signal.addEventListener('abort', () => credentials.resolve());
        yield authRequired;
        if (shown === 'after the credentials') yield text('b');
        asked.resolve();
        await credentials.promise;
        yield text('c');
      });
      const { signal } = new AbortController();
      const deps = { log: task.log, agent, name: 'argocd', logger: quiet, signal, endShownMsMax };
      const outcome = runTurn(deps, task.job()).then(
        end => end?.state,
        ({ word }: AttemptFailed) => word,
      );
      await asked.promise;
      if (shown === 'in time') {
        await until(async () =>
          (await task.inputs()).some(input => 'state' in input && input.state === 'TASK_STATE_AUTH_REQUIRED'),
        );
        await task.foldNew();
      }
      late.resolve();
      if (shown !== 'never') await turns().then(credentials.resolve);
      assert.equal(await outcome, shown === 'never' ? 'wait_not_shown' : 'TASK_STATE_COMPLETED', `${mode}, ${shown}`);
    }
  }
});

test('a file of a server that names its answer is not answer text; the artifact of any other agent is its answer', async () => {
  const chunk = (artifactId: string, name: string, content: string): AgentEvent => ({
    type: 'artifact',
    artifact: { artifactId, name, parts: [{ text: content }] },
    append: false,
    lastChunk: true,
  });
  const shown = async (...script: AgentEvent[]) => {
    const task = await TaskLog.create('caipe');
    await run(task, scripted([...script, done]));
    return [...(await task.fold()).artifacts.values()].map(({ name, text: content }) => [name, content]);
  };
  assert.deepEqual(await shown(chunk('a', 'streaming_result', 'Hello'), chunk('f', 'card.md', '# Ada')), [
    ['streaming_result', 'Hello'],
    ['card.md', '# Ada'],
  ]);
  assert.deepEqual(await shown(chunk('f', 'current_result', 'Hello')), [['streaming_result', 'Hello']]);
});

test('plans, progress and notices of servers below, at any depth, are not answer text', async () => {
  const task = await TaskLog.create('caipe');
  const chunk = (artifactId: string, name: string, content: string, artifactKind?: ArtifactKind): AgentEvent => ({
    type: 'artifact',
    artifact: { artifactId, name, parts: [{ text: content }], ...(artifactKind && { metadata: { artifactKind } }) },
    append: false,
    lastChunk: true,
  });
  await run(
    task,
    scripted([
      chunk('p', 'execution_plan_update', '⟦of the server below⟧'),
      chunk('q', 'agent_execution_plan', '⟦of the one below that⟧'),
      chunk('w', 'progress', 'half of it'),
      chunk('x', 'acme_plan', '⟦in a custom profile⟧', 'plan'),
      chunk('y', 'acme_call', 'calls it', 'call-start'),
      text('answer'),
      chunk('z', 'acme_result', 'answer', 'result'),
      done,
    ]),
  );
  const fold = await task.fold();
  assert.equal(fold.textOf('streaming_result'), 'answer');
  assert.deepEqual(
    [...fold.artifacts.values()].map(({ name, text: shown }) => [name, shown]),
    [
      ['agent_execution_plan', '⟦of the server below⟧'],
      ['agent_execution_plan', '⟦of the one below that⟧'],
      ['progress', 'half of it'],
      ['agent_execution_plan', '⟦in a custom profile⟧'],
      ['acme_call', 'calls it'],
      ['streaming_result', 'answer'],
    ],
  );
});

test('events that an adapter hands over together keep their order, and those after the end are ignored', async () => {
  const task = await TaskLog.create('caipe');
  const agent: Agent = {
    ...scripted([text('one by one'), done]),
    runBatches: async function* () {
      yield [text('a'), text('b')];
      yield [];
      yield [text('c'), done, text('late')];
    },
  };
  assert.equal((await run(task, agent))?.state, 'TASK_STATE_COMPLETED');
  assert.equal((await task.fold()).textOf('streaming_result'), 'abc');
});

test('an agent that hands over many events at once waits for the log between them', async () => {
  const task = await TaskLog.create('caipe');
  const piece = 'x'.repeat(64 * 1024);
  const pieces = 64;
  let taken = 0;
  const batch: AgentEvent[] = [];
  batch[Symbol.iterator] = function* () {
    for (; taken < pieces; taken += 1) yield text(piece);
  } as (typeof batch)[typeof Symbol.iterator];
  const agent: Agent = {
    ...scripted([]),
    runBatches: async function* () {
      yield batch;
    },
  };
  const released = Promise.withResolvers<void>();
  const { inputs } = task.log;
  const append = inputs.append.bind(inputs);
  inputs.append = async (...args) => {
    await released.promise;
    return append(...args);
  };
  const outcome = run(task, agent);
  for (let turns = 0; turns < 100; turns += 1) await new Promise(resolve => setImmediate(resolve));
  assert.ok(taken > 0 && taken * piece.length <= TURN_WAITING_BYTES_MAX, `${taken} of ${pieces} were taken`);
  released.resolve();
  assert.equal((await outcome)?.state, 'TASK_STATE_COMPLETED');
  assert.equal((await task.fold()).textOf('streaming_result'), piece.repeat(pieces));
});
