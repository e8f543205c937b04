import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Agent, TASK_ENDED } from '@hopline/agent';
import { type A2AOptions, createA2AAgent } from '@hopline/agent-a2a';
import {
  answer,
  type ForeignAgent,
  type ForeignAgentOptions,
  type Step,
  startForeignAgent,
} from '../../support/agents/remote-agent.ts';
import { eventsOf, lastOf, textOf, turnOf } from '../../support/agents/turn.ts';

type Pair = { foreign: ForeignAgent; agent: Agent };

async function pair(
  t: TestContext,
  foreignOptions: Partial<ForeignAgentOptions>,
  options: Partial<A2AOptions> = {},
): Promise<Pair> {
  const foreign = await startForeignAgent({ dialect: '0.3', script: [], ...foreignOptions });
  const agent = createA2AAgent({ url: foreign.url, ...options });
  t.after(async () => {
    await agent.close();
    await foreign.close();
  });
  return { foreign, agent };
}

const TOKENS = ['H', 'ere', ' is', ' ', '\n', '✅', ' done', '🔧', ' ', 'ha', 'ha', '\ud83d', '\ude80', '**bold**'];

for (const dialect of ['0.2', '0.3', '1.0'] as const) {
  test(`an agent of ${dialect} streams a status per token [S0-21 S0-25 S0-27 S0-29 S0-39]`, async t => {
    const { foreign, agent } = await pair(t, { dialect, script: answer(TOKENS) });
    const events = await eventsOf(agent, 'show argocd version');
    assert.deepEqual(
      events.flatMap(event => (event.type === 'text' ? [event.text] : [])),
      TOKENS,
    );
    assert.deepEqual(lastOf(events, 'done'), { type: 'done' });
    assert.equal(events.length, TOKENS.length + 1, 'the empty marker is no artifact');
    assert.deepEqual(
      foreign.requests.map(request => [request.method, request.text]),
      [['stream', 'show argocd version']],
    );
  });

  test(`an agent of ${dialect} that does not stream is asked to wait`, async t => {
    const script: Step[] = [
      { notice: 'start', tool: 'x_y' },
      { notice: 'end', tool: 'x_y' },
      { token: 'one' },
      { token: ' two' },
      { complete: true },
    ];
    const { foreign, agent } = await pair(t, { dialect, script, card: { streaming: false } });
    const events = await eventsOf(agent, 'hi');
    assert.equal(textOf(events), 'one two');
    assert.deepEqual(
      events.map(event => event.type),
      ['tool', 'tool', 'text', 'text', 'done'],
    );
    assert.deepEqual(
      foreign.requests.map(request => request.method),
      ['send'],
    );
  });

  test(`an agent of ${dialect} asks for input, and the answer goes to the same task`, async t => {
    const { foreign, agent } = await pair(t, {
      dialect,
      script: ({ turn }) => (turn === 1 ? [{ inputRequired: 'which cluster?' }] : answer(['prod'])),
    });
    const asked = lastOf(await eventsOf(agent, 'deploy'), 'interrupted');
    assert.equal(asked.state, 'TASK_STATE_INPUT_REQUIRED');
    assert.equal(asked.message.parts[0]?.text, 'which cluster?');
    assert.ok(!('taskId' in asked.message) && !('contextId' in asked.message), 'S0-34 ids of the agent stay inside');
    const resume: unknown = JSON.parse(JSON.stringify(asked.resume));
    const events = await eventsOf(agent, 'prod', { resume });
    assert.equal(textOf(events), 'prod');
    assert.equal(foreign.requests[1]?.taskId, foreign.requests[0]?.taskId);
  });
}

test('tool notices are no text, and pair by call [S2-8 S2-18]', async t => {
  const script: Step[] = [
    { notice: 'start', tool: 'version_service__version' },
    { notice: 'start', tool: 'version_service__version' },
    { notice: 'end', tool: 'version_service__version' },
    { notice: 'failed', tool: 'version_service__version' },
    { token: 'v3.1.8+becb020 and a lot of other text' },
    { marker: true },
    { complete: true },
  ];
  const { agent } = await pair(t, { script });
  const events = await eventsOf(agent, 'version');
  const tools = events.flatMap(event => (event.type === 'tool' ? [event] : []));
  assert.deepEqual(
    tools.map(tool => [tool.phase, tool.tool, tool.failed]),
    [
      ['start', 'version_service__version', undefined],
      ['start', 'version_service__version', undefined],
      ['end', 'version_service__version', false],
      ['end', 'version_service__version', true],
    ],
  );
  const [first, second, third, fourth] = tools.map(tool => tool.callId);
  assert.deepEqual([third, fourth], [first, second]);
  assert.notEqual(first, second);
  assert.equal(textOf(events), 'v3.1.8+becb020 and a lot of other text');
});

test('an answer that looks like a notice is text [S2-10]', async t => {
  const texts = [
    '✅ done',
    '✅ Tool deploy completed',
    '❌ failed',
    '🔧',
    '🔍 Searching…',
    'Calling tool: x',
    '✅ Tool x completed. Next',
  ];
  const { agent } = await pair(t, { script: answer(texts) });
  assert.equal(textOf(await eventsOf(agent, 'x')), texts.join(''));
});

test('metadata goes before looks [S2-10]', async t => {
  const script: Step[] = [
    { status: 'working', text: 'starting', metadata: { tool: 'a', phase: 'start', toolCallId: 'c1' } },
    { status: 'working', text: 'over', metadata: { tool: 'a', phase: 'end', toolCallId: 'c1', failed: true } },
    { complete: true },
  ];
  const events = await eventsOf((await pair(t, { script })).agent, 'x');
  assert.deepEqual(events.slice(0, 2), [
    { type: 'tool', phase: 'start', callId: 'c1', tool: 'a' },
    { type: 'tool', phase: 'end', callId: 'c1', tool: 'a', failed: true },
  ]);
  assert.equal(textOf(events), '');
});

test('notices that are artifacts, of a CAIPE supervisor or another Hopline [S2-6]', async t => {
  const metadata = { tool: 'argocd', toolCallId: 'c9' };
  const script: Step[] = [
    {
      artifact: {
        name: 'tool_notification_start',
        description: 'Tool call started: argocd',
        text: '🔧 Supervisor: Calling Agent Argocd...\n',
      },
    },
    { artifact: { name: 'tool_notification_complete', description: 'Tool call completed: argocd', text: '✅\n' } },
    { artifact: { name: 'tool_notification_start', text: 'x', metadata } },
    { artifact: { name: 'tool_notification_end', text: 'x', metadata } },
    { complete: true },
  ];
  const events = await eventsOf((await pair(t, { script })).agent, 'x');
  assert.deepEqual(
    events.flatMap(event => (event.type === 'tool' ? [`${event.phase} ${event.tool}`] : [])),
    ['start argocd', 'end argocd', 'start argocd', 'end argocd'],
  );
});

test('the same message id twice is one token, the same text twice is two [S0-22]', async t => {
  const { agent } = await pair(t, {
    script: [{ token: 'ha', id: '1' }, { token: 'ha', id: '2' }, { token: 'ha', id: '2' }, { complete: true }],
  });
  assert.equal(textOf(await eventsOf(agent, 'x')), 'haha');
});

test('data and files in a status are not lost [S2-28]', async t => {
  const parts = [
    { kind: 'text', text: 'a' },
    { kind: 'data', data: { n: 1 } },
    { kind: 'text', text: 'b' },
    { kind: 'file', file: { uri: 'https://x.test/y.png', mimeType: 'image/png' } },
  ];
  const events = await eventsOf((await pair(t, { script: [{ status: 'working', parts }, { complete: true }] })).agent, 'x');
  assert.equal(textOf(events), 'ab');
  const files = events.flatMap(event => (event.type === 'artifact' ? event.artifact.parts : []));
  assert.deepEqual(files, [{ data: { n: 1 } }, { url: 'https://x.test/y.png', mediaType: 'image/png' }]);
});

test('cumulative texts are snapshots; progress and hidden texts are no answer', async t => {
  const script = answer(['one', 'one two', 'one two three']);
  const cumulative = await eventsOf((await pair(t, { script }, { deltas: 'cumulative' })).agent, 'x');
  assert.ok(cumulative.slice(0, 3).every(event => event.type === 'snapshot'));
  assert.equal(textOf(cumulative), 'one two three');
  const progress = await eventsOf(
    (await pair(t, { script: [{ token: 'Looking up…' }, { complete: true, text: '42' }] }, { text: 'progress' })).agent,
    'x',
  );
  assert.deepEqual(
    progress.map(event => event.type),
    ['progress', 'done'],
  );
  assert.equal(lastOf(progress, 'done').message?.parts[0]?.text, '42');
  const skipped: string[] = [];
  const hidden = await eventsOf(
    (await pair(t, { script }, { text: 'hidden', onSkipped: what => skipped.push(what) })).agent,
    'x',
  );
  assert.equal(textOf(hidden), '');
  assert.deepEqual(skipped, ['hidden text', 'hidden text', 'hidden text', 'empty marker']);
});

test('artifacts pass chunk by chunk with what the agent said of them', async t => {
  const artifact = { artifactId: 'a1', name: 'report', description: 'The report', metadata: { k: 1 } };
  const script: Step[] = [
    { artifact: { ...artifact, text: 'one' }, append: false, lastChunk: false },
    { artifact: { ...artifact, text: ' two' }, append: true },
    { artifact: { ...artifact, text: '' }, append: true, lastChunk: true },
    { complete: true },
  ];
  const events = await eventsOf((await pair(t, { script })).agent, 'x');
  assert.deepEqual(events[0], {
    type: 'artifact',
    artifact: { ...artifact, parts: [{ text: 'one' }] },
    append: false,
    lastChunk: false,
  });
  assert.deepEqual(
    events.flatMap(event => (event.type === 'artifact' ? [[event.append, event.lastChunk]] : [])),
    [
      [false, false],
      [true, false],
      [true, true],
    ],
  );
});

test('a direct message is the whole answer, streamed or not', async t => {
  for (const streaming of [true, false]) {
    const { agent } = await pair(t, { script: [{ message: 'the answer' }], card: { streaming } });
    const [done, ...more] = await eventsOf(agent, 'x');
    assert(done?.type === 'done');
    assert.deepEqual([done.direct, done.message?.parts, more], [true, [{ text: 'the answer' }], []]);
    assert.equal(done.message?.taskId, undefined);
  }
});

test('a failed agent fails the turn, with its message and its word on retries [S0-26]', async t => {
  const failed = lastOf(await eventsOf((await pair(t, { script: [{ fail: true, text: 'no cluster' }] })).agent, 'x'), 'failed');
  assert.equal(failed.reason, 'the agent failed');
  assert.equal(failed.state, 'TASK_STATE_FAILED');
  assert.equal(failed.retryable, false);
  assert.equal(failed.message?.parts[0]?.text, 'no cluster');
  const again = await pair(t, { script: [{ fail: true, metadata: { retryable: true } }] });
  assert.equal(lastOf(await eventsOf(again.agent, 'x'), 'failed').retryable, true);
  const rejected = await pair(t, { script: [{ status: 'rejected' }] });
  assert.equal(lastOf(await eventsOf(rejected.agent, 'x'), 'failed').state, 'TASK_STATE_REJECTED');
});

test('no card: 0.3 JSON-RPC at the URL; an agent that cannot stream is asked to wait', async t => {
  const bare = await pair(t, { script: answer(['hi']), card: false, path: '/a2a/' });
  assert.equal(textOf(await eventsOf(bare.agent, 'x')), 'hi');
  assert.deepEqual(await bare.agent.skills(), []);
  const silent = await pair(t, {
    script: request => (request.method === 'stream' ? [{ error: -32004 }] : answer(['waited'])),
    card: false,
  });
  assert.equal(textOf(await eventsOf(silent.agent, 'x')), 'waited');
  assert.deepEqual(
    silent.foreign.requests.map(request => request.method),
    ['stream', 'send'],
  );
});

test('the card gives skills and path; its host is not believed', async t => {
  const skills = [
    { id: 'deploy', name: 'Deploy', description: 'Deploys', tags: ['k8s'], examples: ['deploy it'], inputModes: ['text/plain'] },
  ];
  const { foreign, agent } = await pair(t, {
    dialect: '1.0',
    script: answer(['x']),
    card: { description: 'Argo', skills },
    path: '/rpc',
  });
  const atRoot = createA2AAgent({ url: foreign.url.replace('/rpc', '') });
  t.after(() => atRoot.close());
  assert.deepEqual(await atRoot.skills(), [
    { id: 'deploy', name: 'Deploy', description: 'Deploys', tags: ['k8s'], examples: ['deploy it'] },
  ]);
  assert.equal(atRoot.description, 'Argo');
  assert.equal(textOf(await eventsOf(atRoot, 'x')), 'x');
  assert.equal(textOf(await eventsOf(agent, 'x')), 'x');
});

test('trace context, headers and metadata are handed on; our ids are not', async t => {
  const { foreign, agent } = await pair(t, { script: answer(['x']) }, { headers: { authorization: 'Bearer k' } });
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  await eventsOf(agent, 'x', { trace: { traceparent }, metadata: { tenant: 'blue' } });
  await eventsOf(agent, 'y');
  await eventsOf(agent, 'z', { contextId: 'context-2' });
  await eventsOf(agent, 'v', { owner: { subject: 'ann' } });
  await eventsOf(agent, 'w', { owner: { subject: 'bob' } });
  const [first, second, third, ann, bob] = foreign.requests.map(({ headers, params }) => ({
    headers,
    params,
    message: params.message as Record<string, unknown>,
  }));
  assert.equal(first?.headers.traceparent, traceparent);
  assert.equal(first?.headers.authorization, 'Bearer k');
  assert.deepEqual(first?.params.metadata, { tenant: 'blue' });
  assert.notEqual(first?.message.contextId, 'context-1');
  assert.equal(first?.message.contextId, second?.message.contextId, 'the agent remembers the conversation');
  assert.notEqual(first?.message.contextId, third?.message.contextId);
  const ofOne = [first, ann, bob].map(asked => asked?.message.contextId);
  assert.equal(new Set(ofOne).size, 3, 'a context that two callers call by one name is two');
  assert.equal(first?.message.taskId, undefined);
});

test('a cancelled turn stops at once, and the agent hears of it', async t => {
  const { foreign, agent } = await pair(t, { script: [{ token: 'a' }, { hang: true }] });
  const stop = new AbortController();
  const seen: string[] = [];
  for await (const event of agent.run(turnOf('x', { signal: stop.signal }))) {
    seen.push(event.type);
    stop.abort();
  }
  assert.deepEqual(seen, ['text']);
  assert.deepEqual(
    foreign.requests.map(request => request.method),
    ['stream', 'cancel'],
  );
});

test('an agent that names its contexts itself is called back in its own, for as long as the conversation goes on [S3-17]', async t => {
  const { foreign, agent } = await pair(t, { script: answer(['x']), ownContexts: true });
  const contexts = () => foreign.requests.map(({ params }) => (params.message as { contextId?: string }).contextId);
  let resume: unknown;
  for (const text of ['2+2', '3+3', 'add them']) {
    const events = await eventsOf(agent, text, resume === undefined ? {} : { resume });
    const done = lastOf(events, 'done');
    // As it comes back from the log.
    resume = JSON.parse(JSON.stringify(done.resume));
  }
  const [first, second, third] = contexts();
  assert.notEqual(first, second);
  assert.equal(second, third);
  assert.deepEqual(resume, { contextId: second });
  assert.ok(
    foreign.requests.every(({ params }) => !('taskId' in (params.message as object))),
    'each turn is a task of its own',
  );
});

test('a turn that begins with a question is no repetition, though the conversation has gone on before', async t => {
  const { agent } = await pair(t, { script: [{ inputRequired: 'which?' }] });
  const events = await eventsOf(agent, 'deploy', { resume: { contextId: 'context-of-theirs' } });
  assert.equal(lastOf(events, 'interrupted').message.parts[0]?.text, 'which?');
});

for (const how of ['stays open', 'breaks'] as const) {
  test(`an agent that needs credentials is waited for, however silent, and goes on: its stream ${how} [S3-5]`, async t => {
    const between: Step[] = how === 'breaks' ? [{ cut: true }, { pause: 300 }] : [{ pause: 300 }];
    const script: Step[] = [{ status: 'auth-required', text: 'log in first' }, ...between, { token: 'here' }, { complete: true }];
    const { foreign, agent } = await pair(t, { dialect: '1.0', script }, { silenceMsMax: 100 });
    const events = await eventsOf(agent, 'x');
    const [asked] = events;
    assert.equal(asked?.type === 'auth-required' && asked.message.parts[0]?.text, 'log in first');
    assert.equal(events.filter(({ type }) => type === 'auth-required').length, 1);
    assert.equal(textOf(events), 'here');
    lastOf(events, 'done');
    assert.ok(!foreign.requests.some(({ method }) => method === 'cancel'));
  });
}

test('who waits for credentials is given up when the task is over, and left to the next turn otherwise [S3-5]', async t => {
  const { foreign, agent } = await pair(t, { script: [{ status: 'auth-required', text: 'log in first' }, { hang: true }] });
  for (const reason of [undefined, 'later turn', TASK_ENDED]) {
    const stop = new AbortController();
    for await (const event of agent.run(turnOf('x', { signal: stop.signal }))) {
      assert.equal(event.type, 'auth-required');
      stop.abort(reason);
    }
  }
  assert.deepEqual(
    foreign.requests.map(({ method }) => method),
    ['stream', 'stream', 'stream', 'cancel'],
  );
});

test('nobody watches for ever: at the turn’s time limit the question stands, and the answer goes to the same task [S3-5]', async t => {
  const script: ForeignAgentOptions['script'] = ({ turn }) =>
    turn === 1 ? [{ status: 'auth-required', text: 'log in first' }, { hang: true }] : answer(['thanks']);
  const { foreign, agent } = await pair(t, { script }, { totalMsMax: 300 });
  const asked = lastOf(await eventsOf(agent, 'x'), 'interrupted');
  assert.deepEqual([asked.state, asked.message.parts[0]?.text], ['TASK_STATE_AUTH_REQUIRED', 'log in first']);
  const taskId = foreign.requests[0]?.taskId;
  assert.deepEqual((asked.resume as { taskId: string }).taskId, taskId);
  assert.ok(!foreign.requests.some(({ method }) => method === 'cancel'));
});
