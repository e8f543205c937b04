import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createClient } from '@hopline/client';
import { freePort } from '@hopline/local-cluster';
import { userMessage } from '../kit/user-message.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { ServiceProcess } from '../support/cluster/service-process.ts';

const KEYS = { ann: 'key-of-ann-12345678', bob: 'key-of-bob-12345678' };
const ANSWER = 'the answer of ann';
const DRAIN_MS_MAX = 10_000;

let folder: string;
let remote: RemoteAgent;
let cluster: Cluster;
/** The console in front of the ingress that needs credentials. */
let web: ServiceProcess;
let taskId: string;

function startConsole(
  t: { after(stop: () => Promise<void>): void } | undefined,
  env: Record<string, string>,
): Promise<ServiceProcess> {
  return freePort().then(async port => {
    const settings = { HOPLINE_CONSOLE_INGRESS_URL: cluster.url, ...env };
    const process = new ServiceProcess({ service: 'console', instance: `console-${port}`, env: settings }, port);
    t?.after(() => process.kill());
    await process.start();
    return process;
  });
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'console-'));
  const keys = Object.entries(KEYS).map(([name, key]) => ({
    key_sha256: hash('sha256', key),
    subject: name,
    tenant: `of-${name}`,
  }));
  await writeFile(join(folder, 'keys.json'), JSON.stringify(keys));
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text }) {
      yield { token: ANSWER };
      if (text.includes('wait')) yield { pause: 120_000 };
      yield { complete: true };
    },
  });
  cluster = await Cluster.shared({
    agents: [{ name: 'answerer', adapter: 'a2a', url: remote.url }],
    ownEnv: { HOPLINE_AUTH_API_KEYS_FILE: join(folder, 'keys.json') },
  });
  web = await startConsole(undefined, {});
  const sent = await createClient({ url: cluster.url, headers: { 'x-api-key': KEYS.ann } }).send('what?');
  assert.ok('task' in sent);
  taskId = sent.task.id;
});

after(async () => {
  await web?.kill();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  if (folder !== undefined) await rm(folder, { recursive: true });
});

const get = (path: string, headers: Record<string, string> = {}, base = web.url) =>
  fetch(base + path, { headers: { 'a2a-version': '1.0', ...headers } });
const as = (name: keyof typeof KEYS, more: Record<string, string> = {}) => ({ 'x-api-key': KEYS[name], ...more });

/** Sends a request with a chosen Host header, which fetch does not allow. */
function statusOf(path: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(web.url + path, { headers }, response => {
      response.resume();
      resolve(response.statusCode!);
    });
    sent.once('error', reject).end();
  });
}

test('a user of the console sees what ingress shows for the user’s credentials, and nothing of another tenant', async () => {
  const ofAnn = (await (await get('/api/tasks', as('ann'))).json()) as { tasks: { id: string }[] };
  assert.deepEqual(
    ofAnn.tasks.map(({ id }) => id),
    [taskId],
  );
  for (const path of ['', '/audit', '/audit/1.1', '/export', ':subscribe'])
    assert.equal((await get(`/api/tasks/${taskId}${path}`, as('ann', { 'last-event-id': '0.0' }))).status, 200, path);
  const others = await (await get('/api/tasks', as('bob'))).text();
  assert.deepEqual((JSON.parse(others) as { tasks: unknown[] }).tasks, []);
  for (const path of ['', '/audit', '/audit/1.1', '/export', ':subscribe']) {
    const response = await get(`/api/tasks/${taskId}${path}`, as('bob', { 'last-event-id': '0.0' }));
    assert.equal(response.status, 404, path);
    assert.ok(!(await response.text()).includes(ANSWER));
  }
  assert.ok(!others.includes(taskId));
});

test('without credentials the API answers as ingress does, and the page contains no task', async () => {
  const response = await get('/api/tasks');
  assert.equal(response.status, 401);
  assert.match(response.headers.get('www-authenticate') ?? '', /^ApiKey /);
  assert.equal((await get('/cluster.stream')).status, 401);
  assert.equal((await get('/cluster.stream', { 'x-api-key': 'wrong-key-1234567' })).status, 401);
  const page = await (await get(`/tasks/${taskId}`)).text();
  assert.match(page, /<div id="app">/);
  assert.ok(!page.includes(taskId));
});

test('a stream is passed on frame by frame, and resumes after its cursor', async () => {
  const framesAfter = async (cursor: string) => {
    const text = await (await get(`/api/tasks/${taskId}:subscribe`, as('ann', { 'last-event-id': cursor }))).text();
    return [...text.matchAll(/^id: (\S+)\ndata: (.*)$/gm)].map(([, id, data]) => [id!, data!]);
  };
  const all = await framesAfter('0.0');
  assert.ok(all.length > 3 && JSON.stringify(all).includes(ANSWER));
  assert.deepEqual(await framesAfter(all[1]![0]!), all.slice(2));
});

test('other hosts, pages of other origins and other paths of ingress are refused', async () => {
  assert.equal(await statusOf('/', { host: 'rebound.example' }), 421);
  assert.equal(await statusOf('/api/tasks', { host: 'rebound.example', ...as('ann') }), 421);
  assert.equal((await get('/api/tasks', as('ann', { 'sec-fetch-site': 'cross-site' }))).status, 403);
  assert.equal((await get('/api/tasks', as('ann', { 'sec-fetch-site': 'same-origin' }))).status, 200);
  for (const path of ['/metrics', '/readyz', '', '/', '/tasks/a/b', '/tasks/%2e%2e', `/tasks/${taskId}/pushNotificationConfigs`])
    assert.equal((await get(`/api${path}`, as('ann'))).status, 404, path);
});

test('every response forbids scripts and requests from other origins, and frames around the page', async () => {
  for (const path of ['/', '/cluster', '/console.json', '/nowhere', '/api/tasks']) {
    const { headers } = await get(path, as('ann'));
    const policy = headers.get('content-security-policy') ?? '';
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "connect-src 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ])
      assert.ok(policy.includes(rule), `${path}: ${rule}`);
    assert.doesNotMatch(policy, /unsafe|\*|data:|https?:/);
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
  }
});

const send = (base: string, headers: Record<string, string>) => {
  const message = userMessage('again');
  return fetch(`${base}/api/message:send`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0', ...headers },
    body: JSON.stringify({ message }),
  });
};

test('the console only reads, unless HOPLINE_CONSOLE_WRITES allows more; a page of another origin never writes', async t => {
  const asked = remote.requests.length;
  assert.equal((await send(web.url, as('ann'))).status, 403);
  const cancel = await fetch(`${web.url}/api/tasks/${taskId}:cancel`, {
    method: 'POST',
    headers: as('ann', { 'a2a-version': '1.0' }),
  });
  assert.equal(cancel.status, 403);
  const writing = await startConsole(t, { HOPLINE_CONSOLE_WRITES: 'true' });
  assert.equal((await send(writing.url, as('ann', { origin: 'https://other.example' }))).status, 403);
  assert.equal(remote.requests.length, asked);
  assert.equal((await send(writing.url, as('ann', { origin: writing.url }))).status, 200);
});

test('on a public address the console serves only an ingress that requires credentials', async t => {
  const { HOPLINE_AUTH_API_KEYS_FILE: _none, HOPLINE_GRPC_PORT: _taken, ...env } = cluster.ingresses[0]!.spec.env;
  const open = new ServiceProcess({ service: 'ingress', instance: 'ingress-open', env }, await freePort());
  t.after(() => open.kill());
  await open.start();
  const shared = { HOPLINE_HOST: '0.0.0.0' };
  const unsafe = await startConsole(t, { ...shared, HOPLINE_CONSOLE_INGRESS_URL: open.url });
  const refused = await get('/api/tasks', {}, unsafe.url);
  assert.equal(refused.status, 403);
  assert.match(await refused.text(), /ingress asks for no credentials/);
  assert.equal((await get('/cluster.stream', {}, unsafe.url)).status, 403);
  const allowed = await startConsole(t, {
    ...shared,
    HOPLINE_CONSOLE_INGRESS_URL: open.url,
    HOPLINE_AUTH_NONE_ON_PUBLIC: 'true',
  });
  assert.equal((await get('/api/tasks', {}, allowed.url)).status, 200);
  const safe = await startConsole(t, shared);
  assert.equal((await get('/api/tasks', as('ann'), safe.url)).status, 200);
});

test('while ingress is away the page loads, and every route behind it answers 502', async t => {
  const alone = await startConsole(t, { HOPLINE_CONSOLE_INGRESS_URL: `http://127.0.0.1:${await freePort()}` });
  assert.equal((await get('/', {}, alone.url)).status, 200);
  for (const path of ['/api/tasks', '/cluster.stream']) {
    const response = await get(path, as('ann'), alone.url);
    assert.equal(response.status, 502, path);
    const text = await response.text();
    assert.match(text, /ingress does not answer/);
    assert.doesNotMatch(text, /ECONNREFUSED|127\.0\.0\.1/, 'a page must not see the address of ingress');
  }
});

test('a drain of the console ends its open streams, and their viewers in ingress, at once', async t => {
  const draining = await startConsole(t, {});
  const client = createClient({ url: cluster.url, headers: { 'x-api-key': KEYS.ann } });
  const sent = await client.send('wait', { blocking: false });
  assert.ok('task' in sent);
  t.after(() => client.cancel(sent.task.id).catch(() => {}));
  const stream = await get(`/api/tasks/${sent.task.id}:subscribe`, as('ann', { 'last-event-id': '0.0' }), draining.url);
  assert.equal(stream.status, 200);
  const began = performance.now();
  await draining.kill('SIGTERM');
  assert.ok(performance.now() - began < DRAIN_MS_MAX);
  await assert.rejects(stream.text(), { message: 'terminated' });
});
