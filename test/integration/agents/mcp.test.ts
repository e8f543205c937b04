import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Agent } from '@hopline/agent';
import { createMcpAgent } from '@hopline/agent-mcp';
import { freePort } from '@hopline/local-cluster';
import { listen } from '../../kit/listen.ts';
import { until } from '../../kit/until.ts';
import { eventsOf, lastOf, textOf, turnOf } from '../../support/agents/turn.ts';

/** The reference servers cannot be imported; they run as commands. */
function serverFile(name: string, from: string): string {
  const manifest = createRequire(new URL(from, import.meta.url)).resolve(`${name}/package.json`);
  return join(dirname(manifest), 'dist/index.js');
}

function agentFor(t: TestContext, args: string[], limits = {}): Agent {
  const agent = createMcpAgent({ command: process.execPath, args, limits });
  t.after(() => agent.close());
  return agent;
}

const everything = (t: TestContext) =>
  agentFor(t, [serverFile('@modelcontextprotocol/server-everything', import.meta.url), 'stdio']);
const hostile = (t: TestContext, limits = {}) =>
  agentFor(t, [fileURLToPath(new URL('../../support/agents/hostile-mcp-server.ts', import.meta.url))], limits);

test('server-everything: tools are skills, and a call named in the text runs', async t => {
  const agent = everything(t);
  const skills = await agent.skills();
  assert.ok(skills.some(skill => skill.id === 'echo' && skill.description !== ''));
  const events = await eventsOf(agent, 'please run echo {"message":"✅ hello  "} now');
  assert.deepEqual(
    events.map(event => event.type),
    ['tool', 'tool', 'text', 'done'],
  );
  const [start, end] = events;
  assert.ok(start?.type === 'tool' && end?.type === 'tool' && start.callId === end.callId && start.tool === 'echo');
  assert.equal(end.failed, false);
  assert.ok(textOf(events).includes('✅ hello  '));
});

test('an agent with chosen tools neither offers nor runs another tool of its server', async t => {
  const args = [serverFile('@modelcontextprotocol/server-everything', import.meta.url), 'stdio'];
  const agent = createMcpAgent({ command: process.execPath, args, tools: ['echo'] });
  t.after(() => agent.close());
  assert.deepEqual(
    (await agent.skills()).map(({ id }) => id),
    ['echo'],
  );
  const failed = lastOf(await eventsOf(agent, 'get-sum {"a":2,"b":3}'), 'failed');
  assert.equal(failed.reason, 'the agent has no tool of that name');
});

test('a server with more tools than an agent may have fails the skills and the turn, until the agent chooses some of them', async t => {
  const file = fileURLToPath(new URL('../../support/agents/hostile-mcp-server.ts', import.meta.url));
  const args = [file, '501'];
  const agent = agentFor(t, args);
  const sentence =
    'the MCP server has 513 tools, and an agent has at most 512: name the tools that it needs in its member `tools`';
  await assert.rejects(agent.skills(), { name: 'TooManyTools', message: sentence });
  const failed = lastOf(await eventsOf(agent, 'ok {}'), 'failed');
  assert.deepEqual([failed.reason, failed.retryable], [sentence, false]);

  const choosing = createMcpAgent({ command: process.execPath, args, tools: ['ok', 'more-500'] });
  t.after(() => choosing.close());
  assert.deepEqual(
    (await choosing.skills()).map(({ id }) => id),
    ['ok', 'more-500'],
  );
  lastOf(await eventsOf(choosing, 'more-500 {}'), 'done');
});

test('server-everything: several calls in order, by data part and by text', async t => {
  const events = await eventsOf(everything(t), [
    { data: { tool: 'get-sum', arguments: { a: 2, b: 3 } } },
    { text: 'echo {"message":"second"}' },
  ]);
  assert.deepEqual(
    events.flatMap(event => (event.type === 'tool' ? [`${event.tool} ${event.phase}`] : [])),
    ['get-sum start', 'get-sum end', 'echo start', 'echo end'],
  );
  assert.match(textOf(events), /5[\s\S]*second/);
});

test('server-everything: progress, images and resources', async t => {
  const agent = everything(t);
  const long = await eventsOf(agent, 'trigger-long-running-operation {"duration":0.3,"steps":3}');
  // The MCP SDK dispatches notifications one tick later than results and drops those of a finished call, so a notification in the same read
  // as the result may be lost.
  const steps = long.filter(event => event.type === 'progress').length;
  assert.ok(steps === 2 || steps === 3, `${steps} of 3 steps`);
  const image = await eventsOf(agent, 'get-tiny-image {}');
  assert.ok(image.some(event => event.type === 'artifact' && event.artifact.parts[0]?.mediaType === 'image/png'));
  const resource = await eventsOf(agent, 'get-resource-reference {"resourceType":"Text","resourceId":1}');
  assert.ok(resource.some(event => event.type === 'artifact' && event.artifact.parts[0]?.raw !== undefined));
});

test('server-everything: cancelling a turn cancels its call', async t => {
  const agent = everything(t);
  await agent.skills();
  const stop = new AbortController();
  const events = agent.run(turnOf('trigger-long-running-operation {"duration":60,"steps":60}', { signal: stop.signal }));
  const all: string[] = [];
  const start = performance.now();
  for await (const event of events) {
    all.push(event.type);
    stop.abort();
  }
  assert.ok(performance.now() - start < 30_000);
  assert.ok(!all.includes('done'));
});

test('server-filesystem: reads a file, and fails for a path outside its folder', async t => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'mcp-')));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'a.md'), '# ✅ Title\r\n\n  two  spaces\n');
  const agent = agentFor(t, [serverFile('@modelcontextprotocol/server-filesystem', '../../../infra/local/package.json'), folder]);
  const events = await eventsOf(agent, `read_text_file ${JSON.stringify({ path: join(folder, 'a.md') })}`);
  assert.equal(textOf(events), '# ✅ Title\r\n\n  two  spaces\n');
  const outside = lastOf(await eventsOf(agent, 'read_text_file {"path":"/etc/hostname"}'), 'failed');
  assert.equal(outside.reason, 'tool read_text_file failed');
  assert.ok((outside.message?.parts[0]?.text ?? '') !== '');
});

test('a message without a call is answered with the list of tools', async t => {
  const events = await eventsOf(hostile(t), 'hello there');
  assert.match(textOf(events), /- environment\n/);
  lastOf(events, 'done');
});

test('a child inherits a minimal environment', async t => {
  process.env.HOPLINE_TEST_SECRET = 'x';
  t.after(() => {
    delete process.env.HOPLINE_TEST_SECRET;
  });
  const names = textOf(await eventsOf(hostile(t), 'environment {}')).split(',');
  assert.deepEqual(
    names.filter(name => !['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER'].includes(name)),
    [],
  );
});

test('a server that dies in mid-call fails the turn as retryable, and the next turn gets a new one', async t => {
  const agent = hostile(t);
  const before = textOf(await eventsOf(agent, 'ok {}'));
  const events = await eventsOf(agent, 'die {}');
  assert.deepEqual(lastOf(events, 'failed'), {
    type: 'failed',
    reason: 'the MCP server closed the connection during die',
    retryable: true,
  });
  assert.ok(events.some(event => event.type === 'tool' && event.phase === 'end' && event.failed));
  const after = textOf(await eventsOf(agent, 'ok {}'));
  assert.match(after, /^pid \d+$/);
  assert.notEqual(after, before);
});

test('finished calls leave no listener on the signal of their turn', async t => {
  const { signal } = new AbortController();
  lastOf(await eventsOf(hostile(t), 'ok {} error {}', { signal }), 'failed');
  lastOf(await eventsOf(hostile(t), 'ok {} ok {} ok {}', { signal }), 'done');
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('pings and log messages of a server do not count as progress of a call', async t => {
  const ended = lastOf(await eventsOf(hostile(t, { silenceMsMax: 200 }), 'ping {}'), 'failed');
  assert.equal(ended.reason, 'tool ping timed out');
});

test('a silent call ends after the silence limit', async t => {
  const agent = hostile(t, { silenceMsMax: 1_000 });
  assert.deepEqual(lastOf(await eventsOf(agent, 'hang {}'), 'failed'), {
    type: 'failed',
    reason: 'tool hang timed out',
    retryable: false,
  });
  assert.match(textOf(await eventsOf(agent, 'ok {}')), /^pid/);
});

test('floods, noise and an answer over the limit are bounded, and the reason contains no content', async t => {
  const agent = hostile(t);
  assert.equal(textOf(await eventsOf(agent, 'flood {}')), 'flooded');
  assert.equal(textOf(await eventsOf(agent, 'noise {}')), 'noted');
  assert.equal(lastOf(await eventsOf(agent, 'huge {}'), 'failed').reason, 'the MCP server closed the connection during huge');
  assert.match(lastOf(await eventsOf(agent, 'garbled {}'), 'failed').reason, /is malformed/);
  const refused = lastOf(await eventsOf(agent, 'refuse {}'), 'failed');
  assert.equal(refused.reason, 'the MCP server answered refuse with error -32050');
  const failed = lastOf(await eventsOf(agent, 'error {}'), 'failed');
  assert.equal(failed.reason, 'tool error failed');
  assert.equal(failed.message?.parts[0]?.text, 'no such file');
});

test('a server that cannot be started fails the turn as retryable', async t => {
  const missing = createMcpAgent({ command: '/nonexistent/server' });
  t.after(() => missing.close());
  assert.deepEqual(await eventsOf(missing, 'x {}'), [
    { type: 'failed', reason: 'the MCP server cannot be reached', retryable: true },
  ]);
  await assert.rejects(missing.skills(), { code: 'ENOENT' });
});

test('streamable HTTP: the same server by URL; its absence is retryable', async t => {
  const { spawn } = await import('node:child_process');
  const port = await freePort();
  const child = spawn(
    process.execPath,
    [serverFile('@modelcontextprotocol/server-everything', import.meta.url), 'streamableHttp'],
    {
      env: { ...process.env, PORT: String(port) },
      stdio: 'ignore',
    },
  );
  t.after(() => child.kill('SIGKILL'));
  await answering(port);
  const agent = createMcpAgent({ url: `http://127.0.0.1:${port}/mcp` });
  t.after(() => agent.close());
  assert.match(textOf(await eventsOf(agent, 'echo {"message":"over http"}')), /over http/);
  child.kill('SIGKILL');
  await new Promise(resolve => child.once('exit', resolve));
  const failed = lastOf(await eventsOf(agent, 'echo {"message":"again"}'), 'failed');
  assert.deepEqual(failed, { type: 'failed', reason: 'the MCP server cannot be reached', retryable: true });
});

test('a server that closes a kept connection while it is used again receives each call exactly once', async t => {
  const used = new WeakSet<object>();
  const called: unknown[] = [];
  const results: Record<string, object> = {
    initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'short', version: '1' } },
    'tools/list': { tools: [{ name: 'count', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: 'counted ' }] },
  };
  const server = createServer((request, response) => {
    if (used.has(request.socket)) return void request.socket.destroy();
    used.add(request.socket);
    if (request.method !== 'POST') return void response.writeHead(405).end();
    void text(request).then(body => {
      const { id, method, params } = JSON.parse(body);
      if (method === 'tools/call') called.push(params.arguments);
      if (id === undefined) return response.writeHead(202).end();
      const answer = JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} });
      return response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
    });
  });
  const origin = await listen(server);
  const agent = createMcpAgent({ url: `${origin}/mcp` });
  t.after(async () => {
    await agent.close();
    server.close();
  });
  const events = await eventsOf(agent, 'count {"n":1} count {"n":2} count {"n":3}');
  assert.equal(textOf(events), 'counted counted counted ');
  assert.deepEqual(called, [{ n: 1 }, { n: 2 }, { n: 3 }]);
});

async function answering(port: number): Promise<void> {
  const answers = () =>
    fetch(`http://127.0.0.1:${port}/mcp`).then(
      async response => {
        await response.body?.cancel();
        return true;
      },
      () => false,
    );
  await until(answers, 'the MCP server answers');
}
