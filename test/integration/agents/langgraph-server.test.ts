import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Turn } from '@hopline/agent';
import { createLangGraphAgent } from '@hopline/agent-langgraph';
import { type RecordedServer, startRecordedServer } from '../../support/agents/recorded-server.ts';
import { eventsOf, lastOf, textOf } from '../../support/agents/turn.ts';

/**
 * Graphs behind a LangGraph server. Without LANGGRAPH_URL, recordings of a real server are replayed (langgraph-api 0.16.7, langgraph
 * 1.2.22). With it, the same tests run against that server (`langgraph dev` in test/support/agents/graphs/server), and
 * LANGGRAPH_RECORD=1 renews the recordings.
 */
const REAL = process.env.LANGGRAPH_URL;
const record = process.env.LANGGRAPH_RECORD === '1';
/** Contexts of a recording have fixed names; a live server needs new ones in each run. */
const run = REAL === undefined || record ? '' : ` ${Date.now()}`;

async function serve(t: TestContext, assistant: string, more: object = {}) {
  const recording = new URL(`../../support/agents/recordings/langgraph-${assistant}.json`, import.meta.url);
  const server = await startRecordedServer(recording, REAL === undefined ? undefined : { url: REAL.replace(/\/$/, ''), record });
  t.after(() => server.close());
  return { server, agent: await createLangGraphAgent({ url: server.url, assistant, ...more }) };
}

const turn = (context: string, messageId: string, text: string, more: Partial<Turn> = {}): Partial<Turn> => ({
  contextId: `context ${context}${run}`,
  taskId: `task ${context}${run}`,
  message: { messageId, role: 'ROLE_USER', parts: [{ text }] },
  ...more,
});

const runsOf = ({ requests }: RecordedServer) => requests.filter(({ path }) => path.endsWith('/runs/stream'));

test('a graph of a server streams its text, and the answer is sent once', async t => {
  const { agent, server } = await serve(t, 'chat');
  const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };
  const events = await eventsOf(agent, '', turn('chat', 'm-1', 'hi', { trace }));
  assert.equal(textOf(events), 'Hello from the server');
  assert.ok(events.filter(event => event.type === 'text').length > 3);
  const done = lastOf(events, 'done');
  assert.equal(done.standing, 'repeats');
  assert.equal(done.message?.messageId, events.find(event => event.type === 'text')?.stream, 'S1-18');
  const [run] = runsOf(server);
  assert.deepEqual((run!.body as { stream_mode: string[] }).stream_mode, ['values', 'messages-tuple', 'custom', 'updates']);
  assert.equal(run!.traceparent, trace.traceparent);
  assert.deepEqual(await agent.skills(), [
    { id: 'chat', name: 'chat', description: 'Graph chat of a LangGraph server', tags: ['langgraph'] },
  ]);
});

test('a message that a server has ingested is not sent to the graph again [S1-9]', async t => {
  const { agent, server } = await serve(t, 'nested');
  assert.equal(textOf(await eventsOf(agent, '', turn('nested', 'm-1', 'hi'))), 'Hello from the server');
  const again = await eventsOf(agent, '', turn('nested', 'm-1', 'hi', { attempt: 2 }));
  assert.equal(textOf(again), 'Hello from the server');
  assert.equal(runsOf(server).length, 1);
});

test('a Python graph streams two parallel models, a custom artifact and an outbox [S1-25 S1-12 S1-29]', async t => {
  const { agent } = await serve(t, 'parallel');
  const events = await eventsOf(agent, '', turn('parallel', 'm-1', 'hi'));
  const texts = new Map<string, string>();
  for (const event of events)
    if (event.type === 'text') texts.set(event.stream ?? '', (texts.get(event.stream ?? '') ?? '') + event.text);
  assert.deepEqual([...texts.values()].toSorted(), ['left one two', 'right three four']);
  const artifact = events.find(event => event.type === 'artifact');
  assert.deepEqual([artifact?.artifact.name, artifact?.artifact.parts, artifact?.lastChunk], ['report', [{ text: 'R' }], true]);
  assert.deepEqual(lastOf(events, 'done').message, { messageId: 'out-1', role: 'ROLE_AGENT', parts: [{ text: 'joined' }] });
});

test('the inbox of a Python graph contains the complete message, and data alone makes no HumanMessage [S1-7 S1-8]', async t => {
  const { agent } = await serve(t, 'echo');
  const echoed = async (options: Partial<Turn>) => JSON.parse(textOf(await eventsOf(agent, '', options)));
  const { received, inbox } = await echoed(turn('echo', 'm-1', 'hi'));
  assert.deepEqual(received, [['human', 'm-1', 'hi']]);
  assert.deepEqual(inbox, { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: 'hi' }] });
  const message = { messageId: 'm-2', role: 'ROLE_USER' as const, parts: [{ data: { x: 1 } }] };
  const data = await echoed(turn('echo data', 'm-2', '', { message }));
  assert.deepEqual([data.received, data.inbox.parts], [[], [{ data: { x: 1 } }]]);
});

test('interrupt() on a server: the answer resumes the thread, even without the resume value of the turn', async t => {
  const { agent, server } = await serve(t, 'asks');
  const question = lastOf(await eventsOf(agent, '', turn('asks', 'm-1', 'paint')), 'interrupted');
  assert.equal(question.message.parts[0]?.text, 'Which colour?');
  const answered = await eventsOf(agent, '', turn('asks', 'm-2', 'blue', { resume: question.resume }));
  assert.equal(textOf(answered), 'painted blue for m-2');
  assert.deepEqual((runsOf(server)[1]!.body as { command: { resume: string } }).command.resume, 'blue');
  await eventsOf(agent, '', turn('asks later', 'm-1', 'paint'));
  assert.equal(textOf(await eventsOf(agent, '', turn('asks later', 'm-2', 'red'))), 'painted red for m-2');
});

test('a node that throws on a server fails the turn with only the class of the error', async t => {
  const { agent } = await serve(t, 'fails');
  const failed = lastOf(await eventsOf(agent, '', turn('fails', 'm-1', 'hi')), 'failed');
  assert.deepEqual([failed.reason, failed.retryable], ['the graph failed: ValueError', false]);
});

test('an endless run is cancelled on the server when its turn ends', async t => {
  const { agent, server } = await serve(t, 'endless', { limits: { silenceMsMax: 1_500 } });
  const events = await eventsOf(agent, '', turn('endless', 'm-1', 'hi'));
  assert.equal(textOf(events), 'begun');
  assert.equal(lastOf(events, 'failed').reason, 'the graph sent no event for 1.5 s');
  assert.ok(server.requests.some(({ path }) => /\/threads\/[^/]+\/runs\/[^/]+\/cancel$/.test(path)));
});
