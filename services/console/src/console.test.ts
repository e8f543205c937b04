import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { AllowedHosts, createHealth } from '@hopline/lifecycle';
import { createLogger } from '@hopline/telemetry';
import { listen } from '../../../test/kit/listen.ts';
import { BODY_BYTES_MAX, type ConsoleServer, createConsole } from './console.ts';
import { LAUNCHER_TOKEN_HEADER } from './kill-routes.ts';
import { LauncherLink } from './launcher-link.ts';

/** A fake of ingress, because only the console's own limits are tested here. */
const upstream = createServer((request, response) => {
  request.resume();
  response.writeHead(200, { 'content-type': 'text/event-stream', 'set-cookie': 'a=1' });
  response.write(': ok\n\n');
  if (!request.url!.includes(':subscribe')) response.end();
});
let server: ConsoleServer;
let url: string;

function consoleBefore(
  ingress: Server,
  host: string,
  launcher?: LauncherLink,
  { home, publicUrl }: { home?: string; publicUrl?: string } = {},
): ConsoleServer {
  const file = { type: 'text/html', bytes: Buffer.from('page'), gzipped: Buffer.from('') };
  return createConsole({
    ingressUrl: `http://127.0.0.1:${(ingress.address() as AddressInfo).port}/behind/`,
    files: new Map([['/', file]]),
    writes: true,
    apiKeyHeader: 'x-api-key',
    host,
    allowsNoneOnPublic: false,
    publicUrl,
    home,
    launcher,
    links: { jaeger: undefined, grafana: undefined },
    version: '0',
    probes: { health: createHealth(), metricsText: async () => '', loopLagMsMax: 60_000, hosts: new AllowedHosts() },
    logger: createLogger({ service: 'console', instance: 'test', level: 'fatal' }),
    requestsMax: 1,
  });
}

before(async () => {
  await listen(upstream);
  server = consoleBefore(upstream, '127.0.0.1');
  url = await server.listen(0);
});

after(async () => {
  await server.close();
  upstream.closeAllConnections();
  upstream.close();
});

test('requests beyond the limit get 503; a client that leaves frees its slot', async () => {
  const leave = new AbortController();
  const stream = await fetch(`${url}/api/tasks/a:subscribe`, { signal: leave.signal });
  assert.equal(stream.status, 200);
  assert.equal((await fetch(`${url}/api/tasks`)).status, 503);
  leave.abort();
  let status = 503;
  while (status === 503) status = (await fetch(`${url}/api/tasks`)).status;
  assert.equal(status, 200);
});

test('a client that leaves while the console asks ingress about its authentication does not keep a slot', async t => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const ingress = createServer(async (request, response) => {
    if (request.url!.endsWith('?pageSize=1')) {
      asked.resolve();
      await answer.promise;
    }
    response.writeHead(401).end();
  }).listen(0, '127.0.0.1');
  await once(ingress, 'listening');
  const exposed = consoleBefore(ingress, '0.0.0.0');
  t.after(async () => {
    await exposed.close();
    ingress.close();
  });
  const { port } = new URL(await exposed.listen(0));
  const client = connect(Number(port), '127.0.0.1');
  client.write('GET /api/tasks HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
  await asked.promise;
  client.destroy();
  // A connection that was opened later is served after the console has seen the end of the first one.
  assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 200);
  answer.resolve();
  let status = 503;
  for (let tries = 1; status === 503 && tries <= 100; tries += 1) {
    await new Promise(resolve => setTimeout(resolve, 20));
    ({ status } = await fetch(`http://127.0.0.1:${port}/api/tasks`));
  }
  assert.equal(status, 401);
});

test('a body of the maximum size is accepted; one byte more gets 413', async () => {
  const send = (bytes: number) =>
    fetch(`${url}/api/message:send`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: Buffer.alloc(bytes, 32),
    });
  assert.equal((await send(BODY_BYTES_MAX)).status, 200);
  assert.equal((await send(BODY_BYTES_MAX + 1)).status, 413);
});

test('no cookie of ingress reaches the page', async () => {
  const { headers } = await fetch(`${url}/api/tasks`);
  assert.equal(headers.get('set-cookie'), null);
  assert.equal(headers.get('cache-control'), 'no-store');
});

const post = (address: string, headers: Record<string, string>) =>
  fetch(address, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: '{}' });
const TOKEN = { [LAUNCHER_TOKEN_HEADER]: 'token' };

/** A launcher that has sent its token, and the processes that it was asked to kill. */
function launcherLink() {
  const killed: string[] = [];
  const channel = Object.assign(new EventEmitter(), {
    send: ({ id, kill }: { id: number; kill: string }) => {
      killed.push(kill);
      channel.emit('message', { id });
    },
  });
  const link = new LauncherLink(channel);
  channel.emit('message', { token: 'token' });
  return { link, killed };
}

test('the page of the launcher can kill a process; other pages, and requests without its token, cannot', async t => {
  const home = mkdtempSync(join(tmpdir(), 'console-'));
  t.after(() => rmSync(home, { recursive: true }));
  const process = { url: 'http://127.0.0.1:1', restarts: 0 };
  const processes = [
    { ...process, service: 'relay', instance: 'relay-1', pid: 12 },
    { ...process, service: 'sub-agent', instance: 'sub-agent-a', pid: null, agent: { name: 'a', target: 'a.ts' } },
    { ...process, service: 'console', instance: 'console-1', pid: 13 },
  ];
  writeFileSync(join(home, 'run.json'), JSON.stringify({ url: '', nats: 'nats://127.0.0.1:1', logs: '', processes }));
  const { link, killed } = launcherLink();
  const local = consoleBefore(upstream, '127.0.0.1', link, { home });
  t.after(() => local.close());
  const at = await local.listen(0);
  const kill = (headers: Record<string, string>) => post(`${at}/processes/relay-1/kill`, headers);
  const info = await fetch(`${at}/console.json`);
  assert.equal(((await info.json()) as { killToken: string }).killToken, 'token');
  assert.equal(info.headers.get('access-control-allow-origin'), null);
  assert.equal((await kill({})).status, 403);
  assert.equal((await kill({ ...TOKEN, origin: 'https://other.example' })).status, 403);
  assert.equal((await kill({ ...TOKEN, 'sec-fetch-site': 'cross-site' })).status, 403);
  assert.equal((await fetch(`${at}/console.json`, { headers: { 'sec-fetch-site': 'cross-site' } })).status, 403);
  // The preflight request of a page of another origin.
  assert.equal((await fetch(`${at}/processes/relay-1/kill`, { method: 'OPTIONS' })).status, 404);
  assert.deepEqual(killed, []);
  assert.equal((await kill(TOKEN)).status, 204);
  assert.deepEqual(killed, ['relay-1']);
  assert.equal((await fetch(`${at}/processes.json`)).status, 403);
  const listed = await (await fetch(`${at}/processes.json`, { headers: TOKEN })).json();
  assert.deepEqual(listed, {
    processes: [
      { service: 'relay', instance: 'relay-1', pid: 12, restarts: 0 },
      { service: 'sub-agent', instance: 'sub-agent-a', agent: 'a', pid: null, restarts: 0 },
    ],
  });
});

test('a console without a launcher, or one that others can reach, cannot kill processes and shows no token', async t => {
  const { link, killed } = launcherLink();
  for (const one of [
    consoleBefore(upstream, '127.0.0.1'),
    consoleBefore(upstream, '0.0.0.0', link),
    consoleBefore(upstream, '127.0.0.1', link, { publicUrl: 'https://hopline.example/' }),
  ]) {
    t.after(() => one.close());
    const { port } = new URL(await one.listen(0));
    const at = `http://127.0.0.1:${port}`;
    assert.equal('killToken' in ((await (await fetch(`${at}/console.json`)).json()) as object), false);
    assert.equal((await fetch(`${at}/processes.json`, { headers: TOKEN })).status, 404);
    assert.equal((await post(`${at}/processes/relay-1/kill`, TOKEN)).status, 404);
  }
  assert.deepEqual(killed, []);
});

test('if ingress requires credentials, killing a process requires them too', async t => {
  const ingress = createServer((request, response) => {
    response.writeHead(request.headers['x-api-key'] === 'key' ? 200 : 401).end();
  }).listen(0, '127.0.0.1');
  await once(ingress, 'listening');
  const { link, killed } = launcherLink();
  const local = consoleBefore(ingress, '127.0.0.1', link);
  t.after(async () => {
    await local.close();
    ingress.close();
  });
  const at = await local.listen(0);
  const kill = (headers: Record<string, string>) => post(`${at}/processes/relay-1/kill`, { ...TOKEN, ...headers });
  assert.equal((await kill({})).status, 401);
  assert.equal((await kill({ 'x-api-key': 'wrong' })).status, 401);
  assert.deepEqual(killed, []);
  assert.equal((await kill({ 'x-api-key': 'key' })).status, 204);
  assert.deepEqual(killed, ['relay-1']);
});

test('the console links to the Jaeger that npm run observe has started beside its cluster, while it runs', async t => {
  const home = mkdtempSync(join(tmpdir(), 'hopline-console-'));
  const beside = consoleBefore(upstream, '127.0.0.1', undefined, { home });
  t.after(async () => {
    await beside.close();
    rmSync(home, { recursive: true });
  });
  const address = await beside.listen(0);
  const links = async () => ((await (await fetch(`${address}/console.json`)).json()) as { links: object }).links;
  assert.deepEqual(await links(), {});
  const jaeger = 'http://127.0.0.1:16686';
  writeFileSync(join(home, 'observe.json'), JSON.stringify({ pid: process.pid, jaeger }));
  assert.deepEqual(await links(), { jaeger });
  // A process that has ended: its parent has waited for it.
  const { pid } = spawnSync(process.execPath, ['--version']);
  writeFileSync(join(home, 'observe.json'), JSON.stringify({ pid, jaeger }));
  assert.deepEqual(await links(), {});
});
