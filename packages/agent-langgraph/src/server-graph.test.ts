import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import type { AgentEvent, Turn } from '@hopline/agent';
import { bareTurn } from '../../../test/kit/bare-turn.ts';
import { collect } from '../../../test/kit/collect.ts';
import { listen } from '../../../test/kit/listen.ts';
import { createLangGraphAgent } from './langgraph-agent.ts';
import { ANSWER_BYTES_MAX, LANGGRAPH_UNREACHABLE } from './server-client.ts';

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

const json =
  (value: unknown): Answer =>
  response => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  };
const status =
  (code: number): Answer =>
  response => {
    response.writeHead(code).end('a secret');
  };
const events =
  (...frames: [event: string, data: unknown][]): Answer =>
  response => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const [event, data] of frames)
      response.write(`event: ${event}\ndata: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
    response.end();
  };

/** A faulty LangGraph server: `run` answers the run, `others` replaces further answers. */
async function serve(t: TestContext, run: Answer, others: Record<string, Answer> = {}) {
  const requested: string[] = [];
  const answers: Record<string, Answer> = {
    search: json([{ assistant_id: 'an-id', name: 'g' }]),
    schemas: json({ state_schema: { properties: { messages: {} } } }),
    state: status(404),
    threads: json({}),
    stream: run,
    cancel: json({}),
    ...others,
  };
  const used = new WeakSet<object>();
  const server = createServer((request, response) => {
    // Acts like a server whose idle timeout ends while a kept connection is being reused.
    if (used.has(request.socket)) return void request.socket.destroy();
    used.add(request.socket);
    const path = request.url ?? '';
    requested.push(path);
    request.resume().on('end', () => (answers[path.split('/').at(-1)!] ?? status(404))(response, request));
  });
  const origin = await listen(server);
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `${origin}/`, requested };
}

async function runTurn(url: string, more: Partial<Turn> = {}): Promise<AgentEvent[]> {
  const agent = await createLangGraphAgent({ url, assistant: 'g', headers: { 'x-api-key': 'a-secret-key' } });
  const events = await collect(agent.run(bareTurn(more)));
  // Ends the repetition of a cancel that the server refuses.
  await agent.close();
  return events;
}

async function failure(url: string): Promise<[string, boolean]> {
  const last = (await runTurn(url)).at(-1);
  assert.ok(last?.type === 'failed', `the turn ended with ${last?.type}`);
  assert.doesNotMatch(last.reason, /secret/);
  return [last.reason, last.retryable];
}

test('an unreachable or rejecting server fails the turn; the failure states whether it is retryable', async t => {
  assert.deepEqual(await failure('http://127.0.0.1:1/'), [LANGGRAPH_UNREACHABLE, true]);
  const refusing = async (code: number) => failure((await serve(t, status(code))).url);
  assert.deepEqual(await refusing(500), ['the LangGraph server answered with status 500', true]);
  assert.deepEqual(await refusing(429), ['the LangGraph server answered with status 429', true]);
  assert.deepEqual(await refusing(401), ['the LangGraph server answered with status 401', false]);
  const elsewhere = await serve(t, events());
  const away: Answer = response => response.writeHead(307, { location: elsewhere.url }).end();
  assert.deepEqual(await failure((await serve(t, away)).url), ['the LangGraph server answered with status 307', false]);
  assert.deepEqual(elsewhere.requested, [], 'no request, and no key, follows the redirect');
  const unknown = await serve(t, events(), { search: json([]) });
  assert.deepEqual(await failure(unknown.url), ['the LangGraph server does not have this assistant', false]);
});

test('responses that no LangGraph server sends fail the turn without being quoted', async t => {
  const reason = async (run: Answer, others: Record<string, Answer> = {}) =>
    (await failure((await serve(t, run, others)).url))[0];
  assert.equal(await reason(json({ a: 'secret' })), 'the LangGraph server answered with something other than an event stream');
  const garbage: Answer = response => response.writeHead(200).end('<html>secret');
  assert.equal(await reason(garbage, { search: garbage }), 'the LangGraph server answered with something other than JSON');
  assert.equal(await reason(events(['values', '{secret'])), 'an event of the LangGraph server is not JSON');
  assert.equal(await reason(events(['metadata', { run_id: 'r' }])), 'the graph ended without a state');
  assert.equal(await reason(events(['error', { error: 'a secret of the user', message: 'secret' }])), 'the graph failed');
  const flood: Answer = response => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const chunk = 'x'.repeat(1024 * 1024);
    for (let bytes = 0; bytes <= ANSWER_BYTES_MAX; bytes += chunk.length) response.write(chunk);
    response.end();
  };
  assert.equal(await reason(events(), { state: flood }), 'a response of the LangGraph server is too large');
});

test('a stream that is cut fails the turn as retryable', async t => {
  const { url } = await serve(t, response => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'content-location': '/threads/x/runs/run-1' });
    response.write('event: values\ndata: {"messages":[]}\n\n');
    setTimeout(() => response.destroy(), 20);
  });
  assert.deepEqual(await failure(url), ['the stream of the LangGraph server broke', true]);
});

test('an event above its bound fails the turn with a reason', async t => {
  const { url } = await serve(t, response => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('event: values\ndata: "');
    const chunk = 'x'.repeat(1024 * 1024);
    for (let sent = 0; sent < 18; sent++) response.write(chunk);
  });
  assert.deepEqual(await failure(url), ['an event of the LangGraph server is too large', false]);
});

test('an aborted turn cancels its run once and emits nothing more', async t => {
  const stop = new AbortController();
  const { url, requested } = await serve(t, response => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'content-location': '/threads/x/runs/run-1' });
    response.write('event: values\ndata: {"messages":[]}\n\n');
  });
  // Only a run whose id the client has read can be canceled.
  const remoteRunBegan = () => void setTimeout(() => stop.abort(), 20);
  assert.deepEqual(await runTurn(url, { signal: stop.signal, remoteRunBegan }), []);
  assert.equal(requested.filter(path => path.endsWith('/runs/run-1/cancel')).length, 1);
});

test('comments and heartbeats do not show that the graph is alive', { timeout: 120_000 }, async t => {
  const { url } = await serve(t, response => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('event: values\ndata: {"messages":[]}\n\n');
    const timer = setInterval(() => response.write(': heartbeat\n\nevent: heartbeat\ndata: \n\n'), 20);
    response.once('close', () => clearInterval(timer));
  });
  const agent = await createLangGraphAgent({ url, assistant: 'g', limits: { silenceMsMax: 200 } });
  const events = await collect(agent.run(bareTurn()));
  const last = events.at(-1);
  assert.equal(last?.type === 'failed' && last.reason, 'the graph sent no event for 0.2 s');
});

test('unknown events are skipped', async t => {
  const ai = {
    type: 'ai',
    id: 'a',
    content: [
      { type: 'text', text: 'an ' },
      { type: 'reasoning', text: 'no' },
      { type: 'text', text: 'answer' },
    ],
  };
  const { url } = await serve(t, events(['heartbeat', ''], ['tasks', { a: 1 }], ['values', { messages: [ai] }]));
  const last = (await runTurn(url)).at(-1);
  assert.deepEqual(last, { type: 'done', message: { messageId: 'a', role: 'ROLE_AGENT', parts: [{ text: 'an answer' }] } });
});

const running: Answer = response => {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'content-location': '/threads/x/runs/run-1' });
  response.write('event: values\ndata: {"messages":[]}\n\n');
};

test('a run is reported, and another process can cancel it; a cancel that a busy server refuses is repeated', async t => {
  const answers = [503, 429, 200];
  const cancel: Answer = response => response.writeHead(answers.shift() ?? 500).end();
  const { url, requested } = await serve(t, running, { cancel });
  const runs: unknown[] = [];
  const stop = new AbortController();
  const began = Promise.withResolvers<void>();
  const onBegan = (run: unknown) => {
    runs.push(run);
    began.resolve();
  };
  const dying = runTurn(url, { signal: stop.signal, remoteRunBegan: onBegan });
  await began.promise;
  const agent = await createLangGraphAgent({ url, assistant: 'g' });
  t.after(() => agent.close());
  await agent.cancelRemoteRun?.(runs[0], {});
  await agent.cancelRemoteRun?.({ taskId: 'of another adapter' }, {});
  const cancels = requested.filter(path => path.endsWith('/cancel'));
  assert.equal(cancels.length, 3);
  assert.match(cancels[0]!, /^\/threads\/[0-9a-f-]{36}\/runs\/run-1\/cancel$/);
  stop.abort();
  await dying;
});

test('an attempt cancels the run of the previous one, then continues from the thread', async t => {
  const ai = { type: 'ai', id: 'a', content: 'whole' };
  const { url, requested } = await serve(t, events(['values', { messages: [ai] }]), { cancel: status(404) });
  const run = { thread: 'the-thread', id: 'run-1' };
  const last = (await runTurn(url, { attempt: 2, remoteRuns: [run] })).at(-1);
  assert.equal(last?.type, 'done');
  const path = (end: string) => requested.findIndex(one => one.endsWith(end));
  assert.ok(path('/threads/the-thread/runs/run-1/cancel') >= 0);
  assert.ok(path('/cancel') < path('/state'), 'the state is read after the run has stopped');
});
