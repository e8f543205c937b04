import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Agent, TASK_ENDED } from '@hopline/agent';
import { type A2AOptions, createA2AAgent } from '@hopline/agent-a2a';
import { CLUSTER_DEPTH_MAX } from '@hopline/events';
import {
  answer,
  type RemoteAgent,
  type RemoteAgentOptions,
  type Step,
  startRemoteAgent,
} from '../../support/agents/remote-agent.ts';
import { eventsOf, lastOf, textOf, turnOf } from '../../support/agents/turn.ts';

type Pair = { remote: RemoteAgent; agent: Agent };

async function pair(
  t: TestContext,
  remoteOptions: Partial<RemoteAgentOptions>,
  options: Partial<A2AOptions> = {},
): Promise<Pair> {
  const remote = await startRemoteAgent({ dialect: '0.3', script: [], ...remoteOptions });
  const agent = createA2AAgent({ url: remote.url, ...options });
  t.after(async () => {
    await agent.close();
    await remote.close();
  });
  return { remote, agent };
}

const TOKENS = ['H', 'ere', ' is', ' ', '\n', '✅', ' done', '🔧', ' ', 'ha', 'ha', '\ud83d', '\ude80', '**bold**'];

for (const dialect of ['0.2', '0.3', '1.0'] as const) {
  test(`a ${dialect} agent streams a status per token [S0-21 S0-25 S0-27 S0-29 S0-39]`, async t => {
    const { remote, agent } = await pair(t, { dialect, script: answer(TOKENS) });
    const events = await eventsOf(agent, 'show argocd version');
    assert.deepEqual(
      events.flatMap(event => (event.type === 'text' ? [event.text] : [])),
      TOKENS,
    );
    assert.deepEqual(lastOf(events, 'done'), { type: 'done' });
    assert.equal(events.length, TOKENS.length + 1, 'the empty marker is not an artifact');
    assert.deepEqual(
      remote.requests.map(request => [request.method, request.text]),
      [['stream', 'show argocd version']],
    );
  });

  test(`a ${dialect} agent without streaming gets a blocking send`, async t => {
    const script: Step[] = [
      { notice: 'start', tool: 'x_y' },
      { notice: 'end', tool: 'x_y' },
      { token: 'one' },
      { token: ' two' },
      { complete: true },
    ];
    const { remote, agent } = await pair(t, { dialect, script, card: { streaming: false } });
    const events = await eventsOf(agent, 'hi');
    assert.equal(textOf(events), 'one two');
    assert.deepEqual(
      events.map(event => event.type),
      ['tool', 'tool', 'text', 'text', 'done'],
    );
    assert.deepEqual(
      remote.requests.map(request => request.method),
      ['send'],
    );
  });

  test(`a ${dialect} agent asks for input, and the answer goes to the same task`, async t => {
    const { remote, agent } = await pair(t, {
      dialect,
      script: ({ turn }) => (turn === 1 ? [{ inputRequired: 'which cluster?' }] : answer(['prod'])),
    });
    const asked = lastOf(await eventsOf(agent, 'deploy'), 'interrupted');
    assert.equal(asked.state, 'TASK_STATE_INPUT_REQUIRED');
    assert.equal(asked.message.parts[0]?.text, 'which cluster?');
    assert.ok(!('taskId' in asked.message) && !('contextId' in asked.message), "the agent's ids are not exposed");
    const resume: unknown = JSON.parse(JSON.stringify(asked.resume));
    const events = await eventsOf(agent, 'prod', { resume });
    assert.equal(textOf(events), 'prod');
    assert.equal(remote.requests[1]?.taskId, remote.requests[0]?.taskId);
  });
}

test('tool notices are not text, and the start and end of a call belong together [S2-8 S2-18]', async t => {
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

test('an answer that only looks like a notice stays text [S2-10]', async t => {
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

test('metadata takes precedence over the form of the text [S2-10]', async t => {
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

test('notices sent as artifacts by a CAIPE supervisor or another Hopline are notices [S2-6]', async t => {
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

test('data and file parts of a status are kept [S2-28]', async t => {
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

test('cumulative texts are snapshots; progress and hidden texts are not part of the answer', async t => {
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

test('cumulative texts are recognized without a setting: each text is shown once, and one log line names the setting', async t => {
  const texts = Array.from(Array(40), (_, index) => Array.from({ length: index + 1 }, (_, word) => `word${word} `).join(''));
  const script = [
    ...texts.map(token => ({ token })),
    { artifact: { text: texts.at(-1)! }, lastChunk: true },
    { complete: true as const },
  ];
  const { agent } = await pair(t, { script });
  const lines: string[] = [];
  const info = (words: TemplateStringsArray) => void lines.push(words.join(''));
  const log = { debug: info, info, warn: info, error: info };
  for (let turn = 0; turn < 2; turn += 1) {
    const events = await eventsOf(agent, 'x', { log });
    assert.equal(textOf(events), texts.at(-1));
    const sent = events.flatMap(event => (event.type === 'text' || event.type === 'snapshot' ? [event.text] : []));
    for (const [index, text] of sent.slice(1).entries()) assert.ok(text.startsWith(sent[index]!));
  }
  assert.equal(lines.length, 1);
  assert.match(lines[0]!, /"deltas" of its entry to "cumulative"/);
});

test('artifacts pass chunk by chunk with their metadata', async t => {
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

test('a direct message is the complete answer, streamed or not', async t => {
  for (const streaming of [true, false]) {
    const { agent } = await pair(t, { script: [{ message: 'the answer' }], card: { streaming } });
    const [done, ...more] = await eventsOf(agent, 'x');
    assert(done?.type === 'done');
    assert.deepEqual([done.direct, done.message?.parts, more], [true, [{ text: 'the answer' }], []]);
    assert.equal(done.message?.taskId, undefined);
  }
});

test('a failed agent fails the turn with its message and its retryable flag [S0-26]', async t => {
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

test('without a card, 0.3 JSON-RPC at the URL is used; an agent without streaming gets a blocking send', async t => {
  const bare = await pair(t, { script: answer(['hi']), card: false, path: '/a2a/' });
  assert.equal(textOf(await eventsOf(bare.agent, 'x')), 'hi');
  assert.deepEqual(await bare.agent.skills(), []);
  const silent = await pair(t, {
    script: request => (request.method === 'stream' ? [{ error: -32004 }] : answer(['waited'])),
    card: false,
  });
  assert.equal(textOf(await eventsOf(silent.agent, 'x')), 'waited');
  assert.deepEqual(
    silent.remote.requests.map(request => request.method),
    ['stream', 'send'],
  );
});

test('skills and path are taken from the card, but not its host', async t => {
  const skills = [
    { id: 'deploy', name: 'Deploy', description: 'Deploys', tags: ['k8s'], examples: ['deploy it'], inputModes: ['text/plain'] },
  ];
  const { remote, agent } = await pair(t, {
    dialect: '1.0',
    script: answer(['x']),
    card: { description: 'Argo', skills },
    path: '/rpc',
  });
  const atRoot = createA2AAgent({ url: remote.url.replace('/rpc', '') });
  t.after(() => atRoot.close());
  assert.deepEqual(await atRoot.skills(), [
    { id: 'deploy', name: 'Deploy', description: 'Deploys', tags: ['k8s'], examples: ['deploy it'] },
  ]);
  assert.equal(atRoot.description, 'Argo');
  assert.equal(textOf(await eventsOf(atRoot, 'x')), 'x');
  assert.equal(textOf(await eventsOf(agent, 'x')), 'x');
});

test('a message that has passed CLUSTER_DEPTH_MAX clusters is not passed on: the URL leads back to one of them', async t => {
  const { remote, agent } = await pair(t, { script: answer(['x']) });
  await eventsOf(agent, 'x', { metadata: { 'hopline.depth': CLUSTER_DEPTH_MAX - 1 } });
  assert.deepEqual(
    remote.requests.map(({ params }) => params.metadata),
    [{ 'hopline.depth': CLUSTER_DEPTH_MAX }],
  );
  const events = await eventsOf(agent, 'x', { metadata: { 'hopline.depth': CLUSTER_DEPTH_MAX } });
  const reason =
    'the message has passed 8 clusters: the URL of this agent, or of an agent behind it, leads back to a cluster that calls it; correct that URL';
  assert.deepEqual(events, [{ type: 'failed', reason, retryable: false }]);
  assert.equal(remote.requests.length, 1);
});

test('trace context, headers and metadata are passed on; our ids are not', async t => {
  const { remote, agent } = await pair(t, { script: answer(['x']) }, { headers: { authorization: 'Bearer k' } });
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  await eventsOf(agent, 'x', { trace: { traceparent }, metadata: { tenant: 'blue' } });
  await eventsOf(agent, 'y');
  await eventsOf(agent, 'z', { contextId: 'context-2' });
  await eventsOf(agent, 'v', { owner: { subject: 'ann' } });
  await eventsOf(agent, 'w', { owner: { subject: 'bob' } });
  const [first, second, third, ann, bob] = remote.requests.map(({ headers, params }) => ({
    headers,
    params,
    message: params.message as Record<string, unknown>,
  }));
  assert.equal(first?.headers.traceparent, traceparent);
  assert.equal(first?.headers.authorization, 'Bearer k');
  assert.deepEqual(first?.params.metadata, { tenant: 'blue', 'hopline.depth': 1 });
  assert.notEqual(first?.message.contextId, 'context-1');
  assert.equal(first?.message.contextId, second?.message.contextId, 'one context of the agent for one of ours');
  assert.notEqual(first?.message.contextId, third?.message.contextId);
  const ofOne = [first, ann, bob].map(asked => asked?.message.contextId);
  assert.equal(new Set(ofOne).size, 3, 'two callers with the same context id get different contexts');
  assert.equal(first?.message.taskId, undefined);
});

test('a cancelled turn stops at once and cancels the task of the agent', async t => {
  const { remote, agent } = await pair(t, { script: [{ token: 'a' }, { hang: true }] });
  const stop = new AbortController();
  const seen: string[] = [];
  for await (const event of agent.run(turnOf('x', { signal: stop.signal }))) {
    seen.push(event.type);
    stop.abort();
  }
  assert.deepEqual(seen, ['text']);
  assert.deepEqual(
    remote.requests.map(request => request.method),
    ['stream', 'cancel'],
  );
});

test('an agent that assigns context ids is called with its own id in each later turn [S3-17]', async t => {
  const { remote, agent } = await pair(t, { script: answer(['x']), ownContexts: true });
  const contexts = () => remote.requests.map(({ params }) => (params.message as { contextId?: string }).contextId);
  let resume: unknown;
  for (const text of ['2+2', '3+3', 'add them']) {
    const events = await eventsOf(agent, text, resume === undefined ? {} : { resume });
    const done = lastOf(events, 'done');
    // A JSON round trip, as through the log.
    resume = JSON.parse(JSON.stringify(done.resume));
  }
  const [first, second, third] = contexts();
  assert.notEqual(first, second);
  assert.equal(second, third);
  assert.deepEqual(resume, { contextId: second });
  assert.ok(
    remote.requests.every(({ params }) => !('taskId' in (params.message as object))),
    'each turn is a new task',
  );
});

test('a turn that starts with a question is not a duplicate of an earlier turn', async t => {
  const { agent } = await pair(t, { script: [{ inputRequired: 'which?' }] });
  const events = await eventsOf(agent, 'deploy', { resume: { contextId: 'context-of-theirs' } });
  assert.equal(lastOf(events, 'interrupted').message.parts[0]?.text, 'which?');
});

for (const how of ['stays open', 'breaks'] as const) {
  test(`auth-required suspends the silence limit, and the turn continues: its stream ${how} [S3-5]`, async t => {
    const silenceMsMax = 1_000;
    const between: Step[] = how === 'breaks' ? [{ cut: true }, { pause: 3 * silenceMsMax }] : [{ pause: 3 * silenceMsMax }];
    const script: Step[] = [{ status: 'auth-required', text: 'log in first' }, ...between, { token: 'here' }, { complete: true }];
    const { remote, agent } = await pair(t, { dialect: '1.0', script }, { silenceMsMax });
    const events = await eventsOf(agent, 'x');
    const [asked] = events;
    assert.equal(asked?.type === 'auth-required' && asked.message.parts[0]?.text, 'log in first');
    assert.equal(events.filter(({ type }) => type === 'auth-required').length, 1);
    assert.equal(textOf(events), 'here');
    lastOf(events, 'done');
    assert.ok(!remote.requests.some(({ method }) => method === 'cancel'));
  });
}

test('waiting for credentials ends with the task; otherwise the next turn continues it [S3-5]', async t => {
  const { remote, agent } = await pair(t, { script: [{ status: 'auth-required', text: 'log in first' }, { hang: true }] });
  for (const reason of [undefined, 'later turn', TASK_ENDED]) {
    const stop = new AbortController();
    for await (const event of agent.run(turnOf('x', { signal: stop.signal }))) {
      assert.equal(event.type, 'auth-required');
      stop.abort(reason);
    }
  }
  assert.deepEqual(
    remote.requests.map(({ method }) => method),
    ['stream', 'stream', 'stream', 'cancel'],
  );
});

test('waiting for credentials ends at the time limit: the question stays, and the answer goes to the same task [S3-5]', async t => {
  const script: RemoteAgentOptions['script'] = ({ turn }) =>
    turn === 1 ? [{ status: 'auth-required', text: 'log in first' }, { hang: true }] : answer(['thanks']);
  const { remote, agent } = await pair(t, { script }, { totalMsMax: 300 });
  const asked = lastOf(await eventsOf(agent, 'x'), 'interrupted');
  assert.deepEqual([asked.state, asked.message.parts[0]?.text], ['TASK_STATE_AUTH_REQUIRED', 'log in first']);
  const taskId = remote.requests[0]?.taskId;
  assert.deepEqual((asked.resume as { taskId: string }).taskId, taskId);
  assert.ok(!remote.requests.some(({ method }) => method === 'cancel'));
});
