import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { listen } from '../../../test/kit/listen.ts';
import { createMcpAgent } from './index.ts';

const TURN_TRACE = `00-${'a'.repeat(32)}-${'1'.repeat(16)}-01`;
const TOOL_TRACE = `00-${'a'.repeat(32)}-${'2'.repeat(16)}-01`;

type Received = { method: string; traceparent: unknown; meta: { traceparent?: string; tracestate?: string } | undefined };

/** An MCP server with one tool, on HTTP with JSON responses. */
async function startServer(received: Received[]) {
  const results: Record<string, object> = {
    initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } },
    'tools/list': { tools: [{ name: 'look_up', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: 'found' }] },
  };
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== 'POST') return response.writeHead(405).end();
    const { id, method, params } = JSON.parse(Buffer.concat(await request.toArray()).toString());
    received.push({ method, traceparent: request.headers.traceparent, meta: params?._meta });
    if (id === undefined) return response.writeHead(202).end();
    response.writeHead(200, { 'content-type': 'application/json' });
    return response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }));
  });
  await listen(server);
  return server;
}

test('the server of a tool gets the trace context of its call in `_meta` and in the headers of HTTP', async () => {
  const received: Received[] = [];
  const server = await startServer(received);
  const agent = createMcpAgent({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` });
  try {
    const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'look_up {"a":1}' }] };
    const turn = {
      taskId: 't',
      contextId: 'c',
      message,
      metadata: {},
      history: [],
      attempt: 1,
      trace: { traceparent: TURN_TRACE },
      toolTrace: () => ({ traceparent: TOOL_TRACE, tracestate: 'k=v' }),
      signal: new AbortController().signal,
    };
    const types: string[] = [];
    for await (const event of agent.run(turn)) types.push(event.type);
    assert.equal(types.at(-1), 'done');
    const call = received.find(({ method }) => method === 'tools/call')!;
    assert.equal(call.traceparent, TOOL_TRACE);
    assert.deepEqual([call.meta?.traceparent, call.meta?.tracestate], [TOOL_TRACE, 'k=v']);
    // Requests of the session itself belong to no call.
    assert.equal(received.find(({ method }) => method === 'tools/list')!.traceparent, undefined);
  } finally {
    await agent.close();
    server.closeAllConnections();
    server.close();
  }
});
