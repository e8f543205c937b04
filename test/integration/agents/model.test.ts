import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { approvalRequestOf, approvalResponsePart } from '@hopline/a2a';
import type { Agent, AgentEvent } from '@hopline/agent';
import { createModelAgent, type ModelAgentOptions } from '@hopline/agent-model';
import { ModelServer, newest, type Reply, type ResponseStep } from '../../support/agents/model-server.ts';
import { eventsOf, lastOf, textOf, turnOf } from '../../support/agents/turn.ts';
import { readTraces, TRACES_ABSENT } from '../../support/recorded-traces.ts';

const MCP = {
  command: process.execPath,
  args: [fileURLToPath(new URL('../../support/agents/hostile-mcp-server.ts', import.meta.url))],
};

type Stand = { agent: Agent; server: ModelServer };

/** A model agent and a scripted model server. `replies` are in order of requests; the last one repeats. */
async function standIn(t: TestContext, replies: readonly Reply[], options: Partial<ModelAgentOptions> = {}): Promise<Stand> {
  const server = await ModelServer.start((_request, nth) => replies[Math.min(nth, replies.length) - 1] ?? []);
  const agent = createModelAgent({ model: 'stand-in', baseUrl: server.url, ...options });
  t.after(async () => {
    await agent.close();
    await server[Symbol.asyncDispose]();
  });
  return { agent, server };
}

const tools = (events: readonly AgentEvent[]) =>
  events.flatMap(event => (event.type === 'tool' ? [`${event.tool} ${event.phase}${event.failed ? ' failed' : ''}`] : []));
const reasoningOf = (events: readonly AgentEvent[]) =>
  events.reduce((text, event) => {
    if (event.type !== 'artifact' || event.artifact.name !== 'reasoning') return text;
    return (event.append ? text : '') + (event.artifact.parts[0]?.text ?? '');
  }, '');

test('recorded provider streams come out byte for byte, with reasoning apart from the answer', async t => {
  const traces = readTraces();
  if (traces === undefined) return t.skip(TRACES_ABSENT);
  for (const { file, deltas, sha256 } of traces) {
    const steps = deltas.flatMap(({ k, t: text }): ResponseStep[] =>
      k === 'text' ? [{ text }] : k === 'reasoning' ? [{ reasoning: text }] : [],
    );
    const { agent } = await standIn(t, [steps], { reasoning: true });
    const events = await eventsOf(agent, 'go');
    lastOf(events, 'done');
    assert.equal(createHash('sha256').update(textOf(events)).digest('hex'), sha256, file);
    const thought = deltas.filter(({ k }) => k === 'reasoning').map(delta => delta.t);
    assert.equal(reasoningOf(events), thought.join(''), file);
  }
});

test('each delta is one event, sent at once; reasoning is off by default', async t => {
  const { agent, server } = await standIn(t, [[{ reasoning: 'hm' }, { tokens: ['a', ' ', '\n', '✅', ' b'] }]]);
  const events = await eventsOf(agent, 'go');
  const usage = { inputTokens: 11, outputTokens: 6, cachedTokens: 4, reasoningTokens: 1 };
  const texts = ['a', ' ', '\n', '✅', ' b'].map(text => ({ type: 'text', text }));
  assert.deepEqual(events, [...texts, { type: 'usage', usage }, { type: 'done' }]);
  assert.deepEqual(server.requests[0]?.messages, [{ role: 'user', content: 'go' }]);
});

test('a request contains system prompt, history of the context, key, headers and trace context', async t => {
  const options = { system: 'be brief', apiKey: 'key-1', headers: { 'x-team': 'blue' }, temperature: 0 };
  const { agent, server } = await standIn(t, [[{ text: 'ok' }]], options);
  const history = [
    { messageId: '1', role: 'ROLE_USER' as const, parts: [{ text: 'before' }] },
    { messageId: '2', role: 'ROLE_AGENT' as const, parts: [{ text: 'answered' }] },
  ];
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  await eventsOf(agent, 'now', { history, trace: { traceparent } });
  const [request] = server.requests;
  assert.deepEqual(request?.messages, [
    { role: 'system', content: 'be brief' },
    { role: 'user', content: 'before' },
    { role: 'assistant', content: 'answered' },
    { role: 'user', content: 'now' },
  ]);
  assert.deepEqual([request?.headers.authorization, request?.headers['x-team']], ['Bearer key-1', 'blue']);
  assert.equal(String(request?.headers.traceparent).split('-')[1], '0af7651916cd43dd8448eb211c80319c');
});

test('images, audio, PDF and text files of a message reach the model in the form of OpenAI, and others by their names', async t => {
  const { agent, server } = await standIn(t, [[{ text: 'ok' }]]);
  const raw = Buffer.from('grüße').toString('base64');
  const file = (filename: string, mediaType: string) => ({ raw, filename, mediaType });
  const parts = [
    ...[{ text: 'look' }, file('a.png', 'image/png'), { url: 'https://x/b.jpg', mediaType: 'image/jpeg' }],
    ...[file('c.wav', 'audio/wav'), file('d.pdf', 'application/pdf'), file('e.csv', 'text/csv; charset=utf-8')],
    ...[file('f.zip', 'application/zip')],
  ];
  await eventsOf(agent, parts);
  const content = server.requests[0]!.messages[0]!.content as unknown as Record<string, unknown>[];
  const [named, ...files] = content;
  assert.match(String(named?.text), /^look\[file a\.png image\/png\].*\[file f\.zip application\/zip\]$/);
  assert.deepEqual(files, [
    { type: 'image_url', image_url: { url: `data:image/png;base64,${raw}` } },
    { type: 'image_url', image_url: { url: 'https://x/b.jpg' } },
    { type: 'input_audio', input_audio: { data: raw, format: 'wav' } },
    { type: 'file', file: { filename: 'd.pdf', file_data: `data:application/pdf;base64,${raw}` } },
    { type: 'text', text: 'grüße' },
  ]);
});

test('a model that reads no files gets their names', async t => {
  const { agent, server } = await standIn(t, [[{ text: 'ok' }]], { media: [] });
  await eventsOf(agent, [{ raw: 'AA==', filename: 'a.png', mediaType: 'image/png' }]);
  assert.deepEqual(server.requests[0]?.messages, [{ role: 'user', content: '[file a.png image/png]' }]);
});

test('parallel tool calls run with balanced events, and the model gets each result once, in call order', async t => {
  const calls: ResponseStep[] = [{ text: 'Looking. ' }, { call: 'ok', args: {} }, { call: 'noise', args: { a: '{"' }, piece: 1 }];
  const { agent, server } = await standIn(t, [calls, [{ text: 'Done.' }]], { mcp: [MCP] });
  const events = await eventsOf(agent, 'use both');
  assert.equal(textOf(events), 'Looking. Done.');
  assert.deepEqual(tools(events).slice(0, 2), ['ok start', 'noise start']);
  assert.deepEqual(tools(events).slice(2).sort(), ['noise end', 'ok end']);
  const ids = events.flatMap(event => (event.type === 'tool' ? [event.callId] : []));
  assert.equal(new Set(ids).size, 2);
  const results = server.requests[1]!.messages.filter(({ role }) => role === 'tool');
  assert.deepEqual(
    results.map(({ tool_call_id }) => tool_call_id),
    ['call_0', 'call_1'],
  );
  assert.match(results[0]!.content!, /^pid \d+$/);
  assert.equal(results[1]!.content, 'noted');
  assert.ok(server.requests[0]!.tools.some(tool => tool.function.name === 'ok'));
});

test('a tool that fails, dies or does not exist gives the model a result, and the turn continues', async t => {
  const turns = [
    [{ call: 'error', args: {} }],
    [{ call: 'die', args: {} }],
    [{ call: 'telepathy', args: {} }],
    [{ text: 'So.' }],
  ];
  const { agent, server } = await standIn(t, turns, { mcp: [MCP] });
  const events = await eventsOf(agent, 'try');
  assert.deepEqual(tools(events), ['error start', 'error end failed', 'die start', 'die end failed']);
  assert.deepEqual(
    server.requests.slice(1).map(request => newest(request, 'tool')),
    ['no such file', 'The call failed: the MCP server closed the connection during die.', 'No tool has that name.'],
  );
  lastOf(events, 'done');
});

test('a call that needs an approval waits, and another process runs it with the arguments that were shown', async t => {
  const calls: ResponseStep[] = [{ text: 'Looking. ' }, { call: 'noise', args: { a: 'b' } }, { call: 'ok', args: {} }];
  const first = await standIn(t, [calls], { mcp: [MCP], approve: ['noise'] });
  const question = { messageId: 'm-1', role: 'ROLE_USER' as const, parts: [{ text: 'make noise' }] };
  const asked = await eventsOf(first.agent, 'make noise', { message: question });
  assert.deepEqual(tools(asked), ['ok start', 'ok end']);
  const { message, resume, state } = lastOf(asked, 'interrupted');
  assert.equal(state, 'TASK_STATE_INPUT_REQUIRED');
  const { callId, ...shown } = approvalRequestOf(message)!;
  assert.deepEqual(shown, { tool: 'noise', arguments: { a: 'b' } });
  // The process has died in the meantime. The history contains the question, like that of a context.
  const history = [question, { messageId: 'a-1', role: 'ROLE_AGENT' as const, parts: message.parts }];
  const stored = JSON.parse(JSON.stringify(resume)) as unknown;
  for (const [approved, result, phases] of [
    [true, 'noted', ['noise start', 'noise end']],
    [false, 'The call was not approved: too loud', ['noise start', 'noise end failed']],
  ] as const) {
    const second = await standIn(t, [[{ text: 'Done.' }]], { mcp: [MCP], approve: true });
    const response = approvalResponsePart({ callId, approved, ...(!approved && { reason: 'too loud' }) });
    const events = await eventsOf(second.agent, [response], { history, resume: stored });
    lastOf(events, 'done');
    assert.equal(textOf(events), 'Done.');
    assert.deepEqual(tools(events), phases);
    assert.ok(events.every(event => event.type !== 'tool' || event.callId === callId));
    const { messages } = second.server.requests[0]!;
    assert.deepEqual(
      messages.map(({ role }) => role),
      ['user', 'assistant', 'tool', 'tool'],
    );
    assert.equal(messages[0]!.content, 'make noise');
    assert.deepEqual([messages[2]!.content, messages[2]!.tool_call_id], [result, 'call_0']);
  }
});

test('more tools than a model is offered fail the skills and the turn: without some of them a model would make up answers', async t => {
  const more = (count: number) => ({ ...MCP, args: [...MCP.args, String(count)] });
  const { agent, server } = await standIn(t, [[{ text: 'hi' }]], { mcp: [MCP, more(105)] });
  const sentence =
    'the MCP servers of the agent have 129 tools, and a model is offered at most 128: let them offer fewer, or give some to another agent';
  await assert.rejects(agent.skills(), { name: 'TooManyTools', message: sentence });
  const failed = lastOf(await eventsOf(agent, 'go'), 'failed');
  assert.deepEqual([failed.reason, failed.retryable], [sentence, false]);
  assert.equal(server.requests.length, 0);
  const full = await standIn(t, [[{ text: 'hi' }]], { mcp: [MCP, more(104)] });
  lastOf(await eventsOf(full.agent, 'go'), 'done');
  assert.equal(full.server.requests[0]?.tools?.length, 128);
  assert.equal((await full.agent.skills()).length, 129);
});

test('a name in approve that no server has fails the turn: the tool that its author meant would run without approval', async t => {
  const { agent, server } = await standIn(t, [[{ text: 'hi' }]], { mcp: [MCP], approve: ['ok', 'nose'] });
  const failed = lastOf(await eventsOf(agent, 'go'), 'failed');
  assert.deepEqual(
    [failed.reason, failed.retryable],
    ['`approve` names nose, a tool that no MCP server of the agent has', false],
  );
  assert.equal(server.requests.length, 0);
});

test('a result above the bound is truncated with a note for the model', async t => {
  const { agent, server } = await standIn(t, [[{ call: 'noise', args: {} }], [{ text: 'ok' }]], {
    mcp: [MCP],
    toolResultUnitsMax: 4,
  });
  await eventsOf(agent, 'go');
  assert.equal(newest(server.requests[1]!, 'tool'), 'note\n[cut: 1 more characters]');
});

test('a model that never stops calling tools ends at the step limit, with the reason', async t => {
  const { agent, server } = await standIn(t, [[{ call: 'ok', args: {} }]], { mcp: [MCP], stepsMax: 3 });
  const events = await eventsOf(agent, 'go');
  assert.deepEqual(lastOf(events, 'failed'), {
    type: 'failed',
    reason: 'the model did not finish within 3 steps',
    retryable: false,
  });
  assert.equal(server.requests.length, 3);
  assert.equal(tools(events).length, 4);
});

test('429 waits for Retry-After and 500 is retried; both end as typed failures without text of the provider', async t => {
  const limited = { status: 429, headers: { 'retry-after': '1' } };
  const { agent, server } = await standIn(t, [limited, { status: 500 }, [{ text: 'at last' }]]);
  const start = performance.now();
  assert.equal(textOf(await eventsOf(agent, 'go')), 'at last');
  assert.ok(performance.now() - start >= 1_000);
  assert.equal(server.requests.length, 3);
  for (const [reply, reason, retryable, tries] of [
    [{ status: 503 }, 'the model provider failed (HTTP 503)', true, 2],
    [{ status: 429, headers: { 'retry-after': '31' } }, 'the model is rate limited (HTTP 429); retry after 31 s', true, 1],
    [{ status: 429, code: 'insufficient_quota' }, "the model's quota is used up (HTTP 429)", false, 1],
    [{ status: 401 }, 'the model provider does not accept the credentials (HTTP 401)', false, 1],
    [{ status: 400 }, 'the model provider refused the request (HTTP 400)', false, 1],
  ] as const) {
    const stand = await standIn(t, [reply], { limits: { triesMax: 2 } });
    assert.deepEqual(await eventsOf(stand.agent, 'go'), [{ type: 'failed', reason, retryable }]);
    assert.equal(stand.server.requests.length, tries);
  }
});

test('an interrupted stream is requested again, and its text is replaced, never repeated', async t => {
  const read = Promise.withResolvers<void>();
  const broken: Reply = [{ reasoning: 'old' }, { tokens: ['Half ', 'an '] }, { until: read.promise }, { cut: true }];
  const whole: Reply = [{ reasoning: 'new' }, { tokens: ['A whole ', 'answer'] }];
  const { agent } = await standIn(t, [[{ text: 'First. ' }, { call: 'ok', args: {} }], broken, whole], {
    mcp: [MCP],
    reasoning: true,
  });
  const events: AgentEvent[] = [];
  for await (const event of agent.run(turnOf('go'))) {
    events.push(event);
    if (event.type === 'text' && event.text === 'an ') read.resolve();
  }
  assert.equal(textOf(events), 'First. A whole answer');
  assert.deepEqual(
    events.filter(event => event.type === 'snapshot'),
    [{ type: 'snapshot', text: 'First. ' }],
  );
  assert.equal(reasoningOf(events), 'new');
});

async function assertFailure(
  t: TestContext,
  steps: readonly ResponseStep[],
  failure: { reason: string; retryable: boolean },
  limits: ModelAgentOptions['limits'] = {},
): Promise<void> {
  const { agent, server } = await standIn(t, [steps], { limits: { ...limits, triesMax: 1 } });
  const events = await eventsOf(agent, 'go');
  assert.deepEqual(lastOf(events, 'failed'), { type: 'failed', ...failure });
  assert.equal(server.requests.length, 1);
  assert.ok(!JSON.stringify(events).includes('secret'));
}

// Each test uses one limit, because a busy machine could exceed the other one.
test('a model that stalls before its first token is a typed failure, never a hang', { timeout: 120_000 }, async t => {
  const failure = { reason: 'the model did not start its answer in time', retryable: true };
  await assertFailure(t, [{ stall: true }], failure, { firstTokenMsMax: 300 });
});

test('a model that falls silent is a typed failure, never a hang', { timeout: 120_000 }, async t => {
  const failure = { reason: 'the model stopped sending', retryable: true };
  await assertFailure(t, [{ text: 'so' }, { stall: true }], failure, { silenceMsMax: 200 });
});

test("comments and empty chunks do not keep a silent model's request alive", { timeout: 120_000 }, async t => {
  const notBegun = { reason: 'the model did not start its answer in time', retryable: true };
  await assertFailure(t, [{ keepAlive: true }], notBegun, { firstTokenMsMax: 300 });
  const silent = { reason: 'the model stopped sending', retryable: true };
  await assertFailure(t, [{ text: 'so' }, { keepAlive: true }], silent, { silenceMsMax: 200 });
});

for (const [name, steps, reason, retryable] of [
  ['cuts the stream', [{ text: 'so' }, { cut: true }], "the model's stream ended early", true],
  ['ends without a reason', [{ text: 'so' }, { end: true }], "the model's stream ended early", true],
  ['sends garbage', [{ text: 'so' }, { garbage: true }], "the model's stream ended early", true],
  ['reports an error in the stream', [{ text: 'so' }, { streamError: 'secret' }], 'the model provider failed', true],
  [
    'returns half a tool call',
    [{ halfCall: 'ok', args: '{"path":"/a' }],
    'the model sent a tool call whose arguments are not a JSON object',
    true,
  ],
  [
    'returns half a tool call and is cut',
    [{ halfCall: 'ok', args: '{"path":"/a' }, { cut: true }],
    "the model's stream ended early",
    true,
  ],
  ['is cut at its length', [{ text: 'so' }, { finish: 'length' }], "the model's answer was cut at its length limit", false],
  ['is filtered', [{ text: 'so' }, { finish: 'content_filter' }], "the provider's content filter ended the answer", false],
  [
    'floods',
    [{ tokens: Array.from({ length: 600 }, () => 'x'.repeat(1_024)) }],
    "the model's answer exceeds the size limit of a step",
    false,
  ],
  [
    'calls 33 tools at once',
    Array.from({ length: 33 }, (_, index): ResponseStep => ({ call: 'ok', args: {}, id: `c${index}` })),
    'the model called too many tools at once',
    false,
  ],
] as const satisfies readonly (readonly [string, readonly ResponseStep[], string, boolean])[]) {
  test(`a model that ${name} is a typed failure, never a hang`, { timeout: 120_000 }, async t => {
    await assertFailure(t, steps, { reason, retryable });
  });
}

test('a refusal of the model is its answer', async t => {
  const { agent } = await standIn(t, [[{ refusal: 'I cannot ' }, { refusal: 'help with that.' }]]);
  const events = await eventsOf(agent, 'go');
  assert.equal(textOf(events), 'I cannot help with that.');
  lastOf(events, 'done');
});

test('a slow reader does not trigger the silence limit', { timeout: 120_000 }, async t => {
  const tokens = Array.from({ length: 40 }, (_, index) => `${index} `);
  const silenceMsMax = 1_000;
  const { agent, server } = await standIn(t, [[{ tokens, everyMs: 20 }]], { limits: { silenceMsMax, triesMax: 1 } });
  const events: AgentEvent[] = [];
  for await (const event of agent.run(turnOf('go'))) {
    events.push(event);
    if (events.length === 1) await new Promise(resolve => setTimeout(resolve, 2 * silenceMsMax));
  }
  lastOf(events, 'done');
  assert.equal(textOf(events), tokens.join(''));
  assert.equal(server.requests.length, 1);
});

test('an MCP server that died in one call is restarted for the next call of the same turn', async t => {
  const replies = [[{ call: 'die', args: {} }], [{ call: 'ok', args: {} }], [{ text: 'So.' }]];
  const { agent, server } = await standIn(t, replies, { mcp: [MCP] });
  const events = await eventsOf(agent, 'try');
  assert.deepEqual(tools(events), ['die start', 'die end failed', 'ok start', 'ok end']);
  assert.match(newest(server.requests[2]!, 'tool'), /^pid \d+$/);
});

test('a model that exceeds its time limit is stopped, though never silent', { timeout: 120_000 }, async t => {
  const limits = { totalMsMax: 400, triesMax: 1 };
  const { agent } = await standIn(t, [[{ tokens: Array.from({ length: 200 }, () => 'x'), everyMs: 20 }]], { limits });
  assert.equal(lastOf(await eventsOf(agent, 'go'), 'failed').reason, 'the model did not finish its answer in time');
});

test('an unreachable model, and an MCP server that cannot start, are retryable with one sentence each', async t => {
  const absent = createModelAgent({ model: 'x', baseUrl: 'http://127.0.0.1:1/v1', limits: { triesMax: 1 } });
  assert.deepEqual(await eventsOf(absent, 'go'), [{ type: 'failed', reason: 'the model cannot be reached', retryable: true }]);
  const { agent } = await standIn(t, [[{ text: 'x' }]], { mcp: [{ command: '/nonexistent/server' }] });
  assert.deepEqual(await eventsOf(agent, 'go'), [
    { type: 'failed', reason: 'an MCP server of the agent cannot be reached', retryable: true },
  ]);
});

test('cancelling a turn closes its request at once and cancels its tool', { timeout: 120_000 }, async t => {
  for (const reply of [[{ text: 'so' }, { stall: true }], [{ call: 'hang', args: {} }]] as ResponseStep[][]) {
    const { agent } = await standIn(t, [reply], { mcp: [MCP] });
    const stop = new AbortController();
    const types: string[] = [];
    for await (const event of agent.run(turnOf('go', { signal: stop.signal }))) {
      if (event.type === 'usage') continue;
      types.push(event.type);
      stop.abort();
    }
    assert.equal(types.length, 1);
  }
});

test('the skills come from the agents file and the tools', async t => {
  const { agent } = await standIn(t, [[{ text: 'x' }]], { mcp: [MCP], description: 'Knows' });
  const skills = await agent.skills();
  assert.deepEqual(skills[0], { id: 'chat', name: 'Chat', description: 'Knows', tags: [] });
  assert.ok(skills.some(skill => skill.id === 'ok'));
});

const { OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL = 'gpt-5-mini' } = process.env;
test('a real model answers with a tool', { skip: OPENAI_BASE_URL === undefined && 'OPENAI_BASE_URL is not set' }, async t => {
  const agent = createModelAgent({
    model: OPENAI_MODEL,
    baseUrl: OPENAI_BASE_URL!,
    apiKey: OPENAI_API_KEY,
    mcp: [MCP],
  });
  t.after(() => agent.close());
  const events = await eventsOf(agent, 'Answer with the single word hello.');
  lastOf(events, 'done');
  assert.match(textOf(events), /hello/i);
  const used = await eventsOf(agent, 'Call the tool named ok once, without arguments, then repeat what it returned.');
  lastOf(used, 'done');
  assert.ok(tools(used).includes('ok end'));
});
