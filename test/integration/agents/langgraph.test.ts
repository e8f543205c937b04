import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentEvent } from '@hopline/agent';
import { type PlayOptions, playTurn } from '@hopline/agent/test-kit';
import { createLangGraphAgent } from '@hopline/agent-langgraph';
import { HumanMessage } from '@langchain/core/messages';
import * as graphs from '../../support/agents/graphs/graphs.ts';
import { eventsOf, lastOf, textOf, turnOf } from '../../support/agents/turn.ts';

type Message = Exclude<Parameters<typeof playTurn>[1], string>;
type Part = Message['parts'][number];

const agentOf = (graph: unknown, more: object = {}) => createLangGraphAgent({ graph, HumanMessage, ...more });
const message = (parts: Part[], messageId = 'm-1'): Message => ({ messageId, role: 'ROLE_USER', parts });
const play = async (graph: unknown, input: string | Message = 'hi', options: PlayOptions = {}, more: object = {}) =>
  playTurn(await agentOf(graph, more), input, options);

test('tokens of a model stream as the answer, and the final state does not repeat them', async () => {
  const { text, end, events } = await play(graphs.chat);
  assert.equal(text, 'Hello \nworld');
  assert.equal(end.state, 'TASK_STATE_COMPLETED');
  assert.equal(end.standing, 'repeats');
  assert.equal(events.filter(event => event.type === 'text').length, 5);
});

test('one HumanMessage has the joined text and the message id; the inbox has the complete message [S1-6 S1-8]', async () => {
  const parts = [{ text: 'a' }, { data: { x: 1 } }, { text: ' b' }];
  const { text } = await play(graphs.echo, message(parts), {
    metadata: { network: 'n' },
    history: [message([{ text: 'before' }], 'm-0')],
  });
  const { received, a2a_inbox: inbox } = JSON.parse(text);
  assert.deepEqual(received, [['human', 'm-1', 'a b']]);
  assert.deepEqual(inbox.message, message(parts));
  assert.deepEqual(inbox.metadata, { network: 'n' });
  assert.equal(inbox.task.id, 'task-1');
  assert.deepEqual(
    inbox.task.history.map((entry: Message) => entry.messageId),
    ['m-0', 'm-1'],
  );
});

test('a message without text runs without a HumanMessage; an empty text counts as text [S1-7]', async () => {
  const data = await play(graphs.echo, message([{ data: { x: 1 } }, { url: 'https://x.test/f' }]));
  assert.deepEqual(JSON.parse(data.text).received, []);
  assert.equal(JSON.parse(data.text).a2a_inbox.message.parts.length, 2);
  assert.deepEqual(JSON.parse((await play(graphs.echo, message([{ text: '' }]))).text).received, [['human', 'm-1', '']]);
});

test('a state without messages gets only the inbox; a state with neither fails with a reason [S1-7]', async () => {
  assert.equal((await play(graphs.deltasOnly)).text, 'only deltas');
  assert.deepEqual((await play(graphs.withoutMessages)).end, {
    state: 'TASK_STATE_FAILED',
    reason: 'the state of the graph has neither messages nor a2a_inbox, so it cannot receive a message',
    retryable: false,
    cause: 'graph_failed',
  });
});

test('ReAct: each model call is a separate text, the last AI message is the answer, tool calls pair by id [S1-19]', async () => {
  const events = await eventsOf(await agentOf(graphs.react), 'hi');
  const texts = new Map<string, string>();
  for (const event of events)
    if (event.type === 'text') texts.set(event.stream ?? '', (texts.get(event.stream ?? '') ?? '') + event.text);
  assert.deepEqual([...texts.values()], ['I look it up. ', 'Found value of a and value of b']);
  const done = lastOf(events, 'done');
  assert.deepEqual(done.message?.parts, [{ text: 'Found value of a and value of b' }]);
  assert.equal(done.message?.role, 'ROLE_AGENT');
  const tools = events.flatMap(event => (event.type === 'tool' ? [`${event.phase} ${event.tool} ${event.callId}`] : []));
  assert.deepEqual(tools.toSorted(), [
    'end look_up call-a',
    'end look_up call-b',
    'start look_up call-a',
    'start look_up call-b',
  ]);
});

test('a graph shows arguments and results of its tools, and each model reports its tokens once', async () => {
  for (const graph of [graphs.react, graphs.routed]) {
    const events = await eventsOf(await agentOf(graph), 'react');
    const ofA = events.flatMap(event => (event.type === 'tool' && event.callId === 'call-a' ? [event] : []));
    assert.deepEqual(
      ofA.map(({ phase, arguments: args, result }) => ({ phase, args, result })),
      [
        { phase: 'start', args: { key: 'a' }, result: undefined },
        { phase: 'end', args: undefined, result: 'value of a' },
      ],
    );
    const usage = events.flatMap(event => (event.type === 'usage' ? [event.usage] : []));
    assert.deepEqual(usage, [{ inputTokens: 5, outputTokens: 2, cachedTokens: 3 }]);
  }
});

test('the id of the AI message is the id of the A2A message [S1-18]', async () => {
  const { message: reply } = lastOf(await eventsOf(await agentOf(graphs.outbox.builder.compile()), 'hi'), 'done');
  assert.equal(reply?.messageId, 'out-1');
  const events = await eventsOf(await agentOf(graphs.chat), 'hi');
  const stream = events.find(event => event.type === 'text')?.stream;
  assert.equal(lastOf(events, 'done').message?.messageId, stream);
});

for (const [name, graph, expected] of [
  ['two branches', graphs.parallel, ['alpha', 'beta', 'both']],
  ['one node three times', graphs.fanOut, ['ape', 'bee', 'cat']],
] as const) {
  test(`${name} in parallel: interleaved tokens are not spliced [S1-25]`, async () => {
    const { events } = await play(graph);
    const texts = new Map<string, string>();
    let changes = 0;
    let before: string | undefined;
    for (const event of events) {
      if (event.type !== 'text') continue;
      const stream = event.stream ?? '';
      texts.set(stream, (texts.get(stream) ?? '') + event.text);
      if (before !== undefined && before !== stream) changes += 1;
      before = stream;
    }
    assert.deepEqual([...texts.values()].toSorted(), expected);
    assert.ok(changes >= expected.length, `the tokens were not interleaved: ${changes} changes`);
  });
}

test('nested sub-graphs stream like the graph itself, once', async () => {
  const { text, end } = await play(graphs.nested);
  assert.equal(text, 'inner');
  assert.equal(end.standing, 'repeats');
});

test("a node that copies its model's text does not repeat it [S2-2]", async () => {
  const { text, end } = await play(graphs.copies);
  assert.equal(text, 'copy');
  assert.equal(end.standing, 'repeats');
});

test('the outbox takes precedence over the last AI message, and that over tokens; the message of the outbox joins the history [S1-12 S1-16]', async () => {
  const { end } = await play(graphs.outbox);
  assert.deepEqual(end.message, { messageId: 'out-1', role: 'ROLE_AGENT', parts: [{ text: 'the outbox' }] });
  assert.deepEqual(end.history, [end.message]);
  assert.equal(end.standing, 'replaces');
});

test('an outbox of an earlier turn is not the answer of this one [S1-12]', async () => {
  const agent = await agentOf(graphs.outbox.builder.compile({ checkpointer: graphs.outbox.checkpointer as never }));
  await playTurn(agent, message([{ text: 'one' }], 'turn-1'));
  const reading = await agentOf(graphs.echo.builder.compile({ checkpointer: graphs.outbox.checkpointer as never }));
  const { end, text } = await playTurn(reading, message([{ text: 'two' }], 'turn-2'));
  assert.equal(end.history, undefined);
  assert.match(text, /turn-2/);
});

test('an outbox with both a task and a message, with neither, or with anything else fails the turn with a reason [S1-13]', async () => {
  const failureReasonIn = async (outbox: unknown) => (await play(graphs.badOutbox(outbox))).end.reason;
  assert.equal(
    await failureReasonIn({ message: { parts: [] }, task: {} }),
    'the a2a_outbox of the graph holds both a message and a task',
  );
  assert.equal(await failureReasonIn({}), 'the a2a_outbox of the graph holds neither a message nor a task');
  assert.equal(
    await failureReasonIn({ message: null, task: null }),
    'the a2a_outbox of the graph holds neither a message nor a task',
  );
  assert.equal(await failureReasonIn('a secret'), 'the a2a_outbox of the graph is not an object');
  assert.equal(
    await failureReasonIn({ message: { text: 'a secret' } }),
    'the message in the a2a_outbox of the graph has no parts',
  );
  assert.equal(await failureReasonIn({ task: 'a secret' }), 'the task in the a2a_outbox of the graph is not an A2A task');
});

test('an outbox task is a patch: artifacts and history are added, metadata merged without the keys of the server [S1-17]', async () => {
  const { end, artifacts } = await play(graphs.outboxTask);
  assert.deepEqual(
    artifacts.map(({ name, parts }) => [name, parts]),
    [['report', [{ data: { rows: 2 } }]]],
  );
  assert.deepEqual(
    end.history?.map(({ messageId }) => messageId),
    ['h-1', 'out-2'],
  );
  assert.deepEqual(end.metadata, { cost: 3 });
  assert.equal(end.message?.parts[0]?.text, 'see the report');
});

test('without outbox and messages the streamed text is the answer [S1-24]', async () => {
  const { end, text } = await play(graphs.deltasOnly);
  assert.deepEqual([end.message, text], [undefined, 'only deltas']);
});

test('A2A events of the graph pass in both notations with our ids, beside the tokens; other payloads are counted [S1-29 S1-30]', async () => {
  const skipped: string[] = [];
  const { artifacts, notices, text, events } = await play(
    graphs.custom,
    'hi',
    {},
    { onSkipped: (what: string) => skipped.push(what) },
  );
  assert.deepEqual(
    artifacts.map(({ name, text: content, closed }) => [name, content, closed]),
    [['report', 'one two', true]],
  );
  assert.deepEqual(notices, ['half way']);
  assert.equal(text, 'tokens');
  assert.deepEqual(skipped, ['custom payload']);
  assert.ok(!JSON.stringify(events.filter(event => event.type === 'progress')).includes('remote'));
  assert.deepEqual(
    [...artifacts.values()].map(({ artifactId }) => artifactId === 'remote-a'),
    [false],
  );
});

test('a terminal status written by the graph is final, and later output is dropped [S1-23 S1-29]', async () => {
  const { end, text } = await play(graphs.customEnd);
  assert.equal(end.state, 'TASK_STATE_REJECTED');
  assert.equal(end.message?.parts[0]?.text, 'not that');
  assert.equal(text, '');
});

test('a graph may write each of the four events of a stream [S1-20]', async () => {
  const ids = { taskId: 'remote', contextId: 'remote' };
  const reply = { messageId: 'reply', role: 'ROLE_AGENT', parts: [{ text: 'reply' }] };
  const artifact = { artifactId: 'x', name: 'report', parts: [{ text: 'R' }] };
  const status = (state: string) => ({ state, message: reply });
  const { notices } = await play(graphs.writes({ statusUpdate: { ...ids, status: status('TASK_STATE_WORKING') } }));
  assert.deepEqual(notices, ['reply']);
  assert.equal((await play(graphs.writes({ artifactUpdate: { ...ids, artifact } }))).artifacts[0]?.text, 'R');
  for (const message of [
    { message: reply },
    { kind: 'message', ...reply, role: 'agent', parts: [{ kind: 'text', text: 'reply' }] },
  ]) {
    const { end } = await play(graphs.writes(message));
    assert.deepEqual([end.message?.parts, end.history?.length], [[{ text: 'reply' }], 1]);
  }
  const task = {
    id: 'remote',
    contextId: 'remote',
    status: status('TASK_STATE_COMPLETED'),
    artifacts: [artifact],
    metadata: { cost: 1 },
  };
  const { artifacts, end } = await play(graphs.writes({ task }));
  assert.deepEqual([artifacts[0]?.text, end.message?.messageId, end.metadata], ['R', 'reply', { cost: 1 }]);
  const question = await play(graphs.writes({ statusUpdate: { ...ids, status: status('TASK_STATE_INPUT_REQUIRED') } }));
  assert.equal(question.end.state, 'TASK_STATE_INPUT_REQUIRED');
});

test('every event has its mode and node, and the node is the step of the turn [S1-21 S1-31]', async () => {
  const { events } = await play(graphs.custom);
  const sources = events.flatMap(event =>
    'source' in event && event.source ? [`${event.type} ${event.source.mode} ${event.source.node}`] : [],
  );
  assert.deepEqual(
    [...new Set(sources)],
    ['progress custom undefined', 'artifact custom undefined', 'text messages n1', 'artifact custom n1'],
  );
  const steps = (await play(graphs.parallel)).events.flatMap(event => (event.type === 'step' ? [event.step] : []));
  assert.deepEqual([...new Set(steps)].toSorted(), ['left', 'right', 'sum']);
});

test('a node that throws fails the turn with the class of the error, not its message; earlier text is kept', async () => {
  const { end, text } = await play(graphs.fails);
  assert.deepEqual(end, {
    state: 'TASK_STATE_FAILED',
    reason: 'the graph failed: TypeError',
    retryable: false,
    cause: 'graph_failed',
  });
  assert.equal(text, 'before ');
});

test('an endless loop ends at the recursion limit', async () => {
  assert.equal((await play(graphs.loops)).end.reason, 'the graph exceeded its recursion limit');
});

test('an endless graph is stopped by a cancel, and by its limits with a reason', { timeout: 120_000 }, async () => {
  const stop = new AbortController();
  const agent = await agentOf(graphs.endless);
  const events: AgentEvent[] = [];
  for await (const event of agent.run(turnOf('hi', { signal: stop.signal }))) {
    events.push(event);
    if (textOf(events) === 'begun') stop.abort();
  }
  assert.ok(stop.signal.aborted);
  const silent = await play(graphs.endless, 'hi', {}, { limits: { silenceMsMax: 150 } });
  assert.deepEqual(silent.end, {
    state: 'TASK_STATE_FAILED',
    reason: 'the graph sent no event for 0.15 s',
    retryable: false,
    cause: 'graph_failed',
  });
  const long = await play(graphs.endless, 'hi', {}, { limits: { totalMsMax: 200 } });
  assert.equal(long.end.reason, 'the turn took longer than 0.2 s');
});

test('an export that is not a compiled graph fails when the agent is created; a function that returns one is accepted', async () => {
  await assert.rejects(agentOf({ nodes: [] }), /^Error: the export is not a compiled graph/);
  await assert.rejects(agentOf(graphs.echo.builder), /is \.compile\(\) missing\?/);
  assert.equal((await play(async () => graphs.chat)).text, 'Hello \nworld');
});
