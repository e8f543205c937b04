import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import type { Turn } from '@hopline/agent';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { bareTurn } from '../../../test/kit/bare-turn.ts';
import { collect } from '../../../test/kit/collect.ts';
import { listen } from '../../../test/kit/listen.ts';
import { until } from '../../../test/kit/until.ts';
import { userMessage } from '../../../test/kit/user-message.ts';
import { createMcpAgent } from './mcp-agent.ts';

type Body = { method?: string };

/**
 * A server over HTTP with one tool, `work`, which ends when its call is canceled. `refuses`: number of cancels that a proxy in front of it
 * answers with 503. `sessions: false`: a server without sessions.
 */
async function serve(t: TestContext, { refuses = 0, sessions = true } = {}) {
  const transports = new Map<string, StreamableHTTPServerTransport>();
  const calls: { isCanceled: boolean }[] = [];
  const refused: string[] = [];
  let refusals = refuses;

  async function open(): Promise<StreamableHTTPServerTransport> {
    const server = new Server({ name: 'worker', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler(ListToolsRequestSchema, async () => ({
      tools: [{ name: 'work', inputSchema: { type: 'object' as const } }],
    }));
    server.setRequestHandler(CallToolRequestSchema, async (_request, { signal }) => {
      const call = { isCanceled: false };
      calls.push(call);
      if (calls.length > 1) return { content: [{ type: 'text', text: 'done' }] };
      await new Promise(resolve => signal.addEventListener('abort', resolve));
      call.isCanceled = true;
      return { content: [] };
    });
    const onsessioninitialized = (id: string) => void transports.set(id, transport);
    const named = sessions && { sessionIdGenerator: () => randomUUID(), onsessioninitialized };
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({ ...named });
    await server.connect(transport as Parameters<Server['connect']>[0]);
    return transport;
  }

  const http = createServer(async (request, response) => {
    const body = request.method === 'POST' ? ((await json(request)) as Body) : undefined;
    if (body?.method === 'notifications/cancelled' && refusals > 0) {
      refusals -= 1;
      refused.push(sessionOf(request) ?? '');
      return void response.writeHead(503).end();
    }
    const session = sessionOf(request);
    const known = session === undefined ? undefined : transports.get(session);
    if (session !== undefined && known === undefined) return void response.writeHead(404).end();
    await (known ?? (await open())).handleRequest(request, response, body);
  });
  const origin = await listen(http);
  t.after(() => {
    http.closeAllConnections();
    http.close();
  });
  return { url: `${origin}/mcp`, calls, refused };
}

const sessionOf = ({ headers }: IncomingMessage) => headers['mcp-session-id'] as string | undefined;

function agentOf(t: TestContext, url: string) {
  const agent = createMcpAgent({ url });
  t.after(() => agent.close());
  return agent;
}

const turn = (more: Partial<Turn> = {}): Turn => bareTurn({ message: userMessage('work {}', { messageId: 'm' }), ...more });

/** Begins a call that does not end by itself. `runs` has the calls that its process has reported. */
async function begin(agent: ReturnType<typeof createMcpAgent>, calls: readonly unknown[], more: Partial<Turn> = {}) {
  const runs: unknown[] = [];
  const events = agent.run(turn({ remoteRunBegan: run => runs.push(run), ...more }))[Symbol.asyncIterator]();
  await events.next();
  const rest = events.next();
  rest.catch(() => {});
  await until(() => calls.length === 1);
  return { runs, rest };
}

test('a call is reported with its request in a session, and another process cancels it', { timeout: 120_000 }, async t => {
  const { url, calls, refused } = await serve(t, { refuses: 1 });
  const { runs } = await begin(agentOf(t, url), calls);
  assert.equal(runs.length, 1);
  assert.doesNotMatch(JSON.stringify(runs), /127\.0\.0\.1/, 'an address may hold a secret');
  await agentOf(t, url).cancelRemoteRun?.(runs[0], {});
  await until(() => calls[0]!.isCanceled);
  assert.equal(refused.length, 1, 'a cancel that a proxy refused was repeated');
});

test('the next attempt cancels the previous attempt’s call, and calls again', { timeout: 120_000 }, async t => {
  const { url, calls } = await serve(t);
  const { runs } = await begin(agentOf(t, url), calls);
  const events = await collect(agentOf(t, url).run(turn({ attempt: 2, remoteRuns: runs })));
  assert.deepEqual([calls[0]?.isCanceled, calls.length, events.at(-1)?.type], [true, 2, 'done']);
});

test('a call of a turn that is canceled is canceled at the server, even when its first request fails', {
  timeout: 120_000,
}, async t => {
  const { url, calls, refused } = await serve(t, { refuses: 2 });
  const stop = new AbortController();
  const { rest } = await begin(agentOf(t, url), calls, { signal: stop.signal });
  stop.abort();
  await rest;
  await until(() => calls[0]!.isCanceled);
  assert.equal(refused.length, 2);
});

test('runs of another server or adapter are not canceled', async t => {
  const { url } = await serve(t);
  const agent = agentOf(t, url);
  await agent.cancelRemoteRun?.({ taskId: 'a remote task' }, {});
  await agent.cancelRemoteRun?.({ server: 'another', session: 's', request: 1 }, {});
});

test('a server that has forgotten the session ends the cancel', { timeout: 120_000 }, async t => {
  const first = await serve(t);
  const { runs } = await begin(agentOf(t, first.url), first.calls);
  await agentOf(t, first.url).cancelRemoteRun?.({ ...(runs[0] as object), session: 'forgotten' }, {});
  assert.equal(first.calls[0]?.isCanceled, false);
});

test('a call to a server without sessions cannot be named, so it is not reported', { timeout: 120_000 }, async t => {
  const { url, calls } = await serve(t, { sessions: false });
  const { runs } = await begin(agentOf(t, url), calls);
  assert.deepEqual(runs, []);
});
