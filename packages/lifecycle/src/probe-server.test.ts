import assert from 'node:assert/strict';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import test, { type TestContext } from 'node:test';
import fastify from 'fastify';
import { until } from '../../../test/kit/until.ts';
import { AllowedHosts } from './allowed-hosts.ts';
import { createHealth } from './health.ts';
import { PROBE_CONNECTIONS_MAX } from './probe-connections.ts';
import { startProbeServer } from './probe-server.ts';
import { type ProbeOptions, registerProbes } from './probes.ts';

const LAG_MS_MAX = 60_000;

async function probes(t: TestContext, given: { loopLagMsMax?: number; metricsText?: ProbeOptions['metricsText'] } = {}) {
  const health = createHealth();
  const options = {
    health,
    metricsText: async () => '# none\n',
    loopLagMsMax: LAG_MS_MAX,
    hosts: new AllowedHosts(),
    host: '127.0.0.1',
    port: 0,
    ...given,
  };
  const server = await startProbeServer(options);
  t.after(() => server.close());
  const get = async (path: string, init?: RequestInit) => {
    const response = await fetch(`${server.url}${path}`, init);
    return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
  };
  return { health, server, get };
}

test('readyz follows start, checks and drain', async t => {
  const { health, get } = await probes(t);
  const starting = await get('/readyz');
  assert.equal(starting.status, 503);
  assert.deepEqual(JSON.parse(starting.text), {
    ready: false,
    draining: false,
    not_ready: [{ check: 'start', reason: 'starting' }],
    degraded: [],
  });
  let up = false;
  health.started([{ name: 'log', check: () => (up ? Promise.resolve() : Promise.reject(new TypeError('x'))) }]);
  assert.deepEqual(JSON.parse((await get('/readyz')).text).not_ready, [{ check: 'log', reason: 'TypeError' }]);
  up = true;
  assert.equal((await get('/readyz')).status, 200);
  health.drain();
  const draining = await get('/readyz');
  assert.equal(draining.status, 503);
  assert.equal(JSON.parse(draining.text).draining, true);
  assert.equal((await get('/livez')).status, 200);
});

test('livez is 503 when the event loop was blocked for longer than the limit', async t => {
  const { get } = await probes(t, { loopLagMsMax: 100 });
  const used = process.cpuUsage();
  while (process.cpuUsage(used).user < 400_000);
  const { status, text } = await get('/livez');
  assert.equal(status, 503);
  const answer = JSON.parse(text);
  assert.deepEqual([answer.alive, answer.loop_lag_ms_max], [false, 100]);
  assert.ok(answer.loop_lag_ms > 100);
});

test('metrics has the content type of the Prometheus text format', async t => {
  const { get } = await probes(t, { metricsText: async () => 'a_total 1\n' });
  assert.deepEqual(await get('/metrics'), { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', text: 'a_total 1\n' });
});

test('a scraper that accepts OpenMetrics gets it', async t => {
  const { get } = await probes(t, { metricsText: async format => `# ${format}\n` });
  // The header of Prometheus 2.42.
  const accept =
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';
  const type = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
  assert.deepEqual(await get('/metrics', { headers: { accept } }), { status: 200, type, text: '# openmetrics\n' });
  assert.equal((await get('/metrics', { headers: { accept: 'text/plain' } })).text, '# text\n');
});

test('other paths are a JSON 404, and a fault contains no error message', async t => {
  const { get } = await probes(t, { metricsText: () => Promise.reject(new Error('PLANTED')) });
  for (const path of ['/', '/nope', '/readyz/x', '/%zz']) {
    const { status, type, text } = await get(path);
    assert.ok(status === 404 || status === 400, path);
    assert.match(String(type), /^application\/json/);
    assert.doesNotMatch(text, /zz|nope/);
  }
  assert.equal((await get('/readyz', { method: 'POST' })).status, 404);
  const fault = await get('/metrics');
  assert.deepEqual([fault.status, fault.text], [500, '{"error":"internal"}']);
});

/** A connection that has sent `text`. `closed` resolves when the server has closed it. */
async function hold(t: TestContext, url: string, text = '') {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  t.after(() => socket.destroy());
  const closed = new Promise<void>(resolve => socket.on('error', () => {}).once('close', () => resolve()));
  socket.resume();
  await new Promise(resolve => socket.once('connect', resolve));
  if (text !== '') await new Promise<void>(resolve => socket.write(text, () => resolve()));
  return { socket, closed };
}

/** Status of one `/livez` over a new connection; 0 when it was closed without an answer. */
const livez = (url: string) =>
  new Promise<number>(resolve => {
    const request = httpGet(`${url}/livez`, { agent: false }, response => {
      response.resume();
      resolve(response.statusCode!);
    });
    request.once('error', () => resolve(0));
  });

const HALF = 'GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n';

test('connections that stay silent close by themselves', async t => {
  const { server } = await probes(t);
  const held = await Promise.all(Array.from({ length: PROBE_CONNECTIONS_MAX }, () => hold(t, server.url)));
  assert.ok(held.every(({ socket }) => !socket.closed));
  await Promise.all(held.map(({ closed }) => closed));
  assert.equal(await livez(server.url), 200);
});

test('a client that reopens incomplete requests whenever one is closed cannot keep probes out', { timeout: 120_000 }, async t => {
  const { server } = await probes(t);
  let isOver = false;
  let opened = 0;
  t.after(() => {
    isOver = true;
  });
  const attack = async () => {
    while (!isOver) {
      const { closed } = await hold(t, server.url, HALF);
      opened += 1;
      await closed;
    }
  };
  const attackers = Array.from({ length: PROBE_CONNECTIONS_MAX + 16 }, attack);
  // Continues until every slot has been taken several times.
  await until(() => opened >= 4 * PROBE_CONNECTIONS_MAX);
  const statuses: number[] = [];
  for (let probe = 0; probe < 20; probe += 1) statuses.push(await livez(server.url));
  isOver = true;
  await Promise.all(attackers);
  assert.deepEqual(statuses, Array(20).fill(200));
});

test('at the limit, connections without a request are closed, but requests in progress and kept connections are not', async t => {
  const finish = Promise.withResolvers<string>();
  const { server } = await probes(t, { metricsText: () => finish.promise });
  const scrape = fetch(`${server.url}/metrics`);
  const kept = await hold(t, server.url, `${HALF}\r\n`);
  await new Promise(resolve => kept.socket.once('data', resolve));
  const held = await Promise.all(Array.from({ length: PROBE_CONNECTIONS_MAX }, () => hold(t, server.url, HALF)));
  await Promise.race(held.map(({ closed }) => closed));
  const answered = new Promise(resolve => kept.socket.once('data', resolve));
  kept.socket.write(`${HALF}\r\n`);
  assert.match(String(await answered), /^HTTP\/1\.1 200/);
  finish.resolve('m 1\n');
  assert.equal((await scrape).status, 200);
});

test('while PROBE_CONNECTIONS_MAX requests are in progress, one more is refused', async t => {
  const finish = Promise.withResolvers<string>();
  let scraping = 0;
  const all = Promise.withResolvers<void>();
  const metricsText = () => {
    scraping += 1;
    if (scraping === PROBE_CONNECTIONS_MAX) all.resolve();
    return finish.promise;
  };
  const { server } = await probes(t, { metricsText });
  const scrape = HALF.replace('livez', 'metrics');
  const held = await Promise.all(Array.from({ length: PROBE_CONNECTIONS_MAX }, () => hold(t, server.url, `${scrape}\r\n`)));
  await all.promise;
  await (await hold(t, server.url)).closed;
  assert.equal(held.filter(({ socket }) => socket.closed).length, 0);
  finish.resolve('m 1\n');
});

test('close does not wait for a scraper that keeps its connection open', async t => {
  const { server, get } = await probes(t);
  await get('/livez');
  const idle = connect(Number(new URL(server.url).port), '127.0.0.1');
  await new Promise(resolve => idle.once('connect', resolve));
  const started = performance.now();
  await server.close();
  assert.ok(performance.now() - started < 5000);
  idle.destroy();
});

test('the routes can be mounted on an existing server, and stop measuring when it closes', async t => {
  const app = fastify({ logger: false });
  t.after(() => app.close());
  const health = createHealth();
  health.started([]);
  registerProbes(app, { health, metricsText: async () => 'm 1\n', loopLagMsMax: LAG_MS_MAX, hosts: new AllowedHosts() });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  for (const path of ['/livez', '/readyz', '/metrics']) assert.equal((await fetch(`${url}${path}`)).status, 200);
});

test('on a server with other routes, the probes answer under IP addresses and localhost, never under the server’s names', async t => {
  const app = fastify({ logger: false });
  t.after(() => app.close());
  const health = createHealth();
  health.started([]);
  const hosts = new AllowedHosts('*', ['https://a2a.example.com/']);
  registerProbes(app, { health, metricsText: async () => 'm 1\n', loopLagMsMax: LAG_MS_MAX, hosts });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const ask = async (path: string, host: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    httpGet({ port, path, headers: { host } }, resolve).on('error', reject);
    const response = await promise;
    return { status: response.statusCode, body: await text(response) };
  };
  for (const path of ['/livez', '/readyz', '/metrics']) {
    for (const host of ['10.244.0.7:8000', '[fd00::7]:8000', '127.0.0.1', 'localhost:8000'])
      assert.equal((await ask(path, host)).status, 200, host);
    for (const host of ['a2a.example.com', 'hopline-ingress.default.svc:8000', 'evil.example'])
      assert.equal((await ask(path, host)).status, 421, host);
  }
  assert.match((await ask('/metrics', 'a2a.example.com')).body, /HOPLINE_PROBE_PORT/);
});

test('probes with their own port are not served on the port of the service', async t => {
  const app = fastify({ logger: false });
  t.after(() => app.close());
  const hosts = new AllowedHosts();
  registerProbes(app, { health: createHealth(), metricsText: async () => '', loopLagMsMax: LAG_MS_MAX, hosts, elsewhere: true });
  await app.ready();
  for (const url of ['/livez', '/readyz', '/metrics']) assert.equal((await app.inject({ url })).statusCode, 404);
});
