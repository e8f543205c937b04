import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2AError } from '@hopline/a2a';
import { CallFailed, GrpcClient } from '@hopline/a2a-grpc/test-client';
import type { Authenticator } from '@hopline/endpoint';
import { AllowedHosts } from '@hopline/lifecycle';
import { openServers, type Servers } from './open-servers.ts';
import { exchangeRaw, type RawRequest, requestText } from './raw-http.ts';

const json = { 'content-type': 'application/json' };
const v1 = { 'a2a-version': '1.0' };
const rpc = (method: string, params: object = {}) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });

/** Requests that a page could send to each kind of server, and the form of a refusal. */
const A2A_REQUESTS: Record<string, RawRequest & { form: RegExp }> = {
  'JSON-RPC of 1.0': {
    line: 'POST /',
    headers: { ...json, ...v1 },
    body: rpc('ListTasks'),
    form: /"jsonrpc":"2\.0".*"code":-32600/,
  },
  'JSON-RPC of 0.3': {
    line: 'POST /a2a',
    headers: json,
    body: rpc('tasks/get', { id: 'x' }),
    form: /"reason":"PERMISSION_DENIED"/,
  },
  'HTTP+JSON of 1.0': { line: 'GET /tasks', headers: v1, form: /^\{"error":\{"code":421,/ },
  'HTTP+JSON of 0.3': { line: 'GET /v1/tasks', form: /"code":-32600/ },
  card: { line: 'GET /.well-known/agent-card.json', form: /"reason":"PERMISSION_DENIED"/ },
  metrics: { line: 'GET /metrics', form: /^\{"error":"/ },
  readiness: { line: 'GET /readyz', form: /^\{"error":"/ },
  'an unknown path': { line: 'GET /nothing', form: /^\{"error":"/ },
};
const REQUESTS: Record<keyof Servers['urls'], Record<string, RawRequest & { form: RegExp }>> = {
  ingress: {
    ...A2A_REQUESTS,
    agents: { line: 'GET /agents', form: /^\{"error":\{"code":421,/ },
    'a preflight': { line: 'OPTIONS /tasks', headers: { 'access-control-request-method': 'POST' }, form: /^\{"error":"/ },
  },
  'sub-agent': { ...A2A_REQUESTS, webhooks: { line: `POST /webhooks/${'a'.repeat(43)}`, form: /^\{"error":"/ } },
  probes: {
    metrics: A2A_REQUESTS.metrics!,
    readiness: A2A_REQUESTS.readiness!,
    liveness: { line: 'GET /livez', form: /^\{"error":"/ },
  },
};

const HOSTS = new AllowedHosts('hopline-ingress', ['https://public.example/a2a']);
const ALLOWED = ['localhost', '127.0.0.1:8000', '[::1]:8000', '10.1.2.3:8000', 'hopline-ingress:8000', 'public.example'];
const PROBES = new Set(['metrics', 'readiness']);
const isAddress = (host: string) => /^(?:localhost|[\d.]+|\[.*\])(?::\d+)?$/.test(host);
const REBOUND = ['evil.example', 'evil.example:8000', 'localhost.evil.example', 'a.localhost', '127.0.0.1.nip.example'];

function send(url: string, { line, headers, body = '' }: RawRequest, more: RawRequest['headers']) {
  return exchangeRaw(url, requestText({ line, headers: { ...headers, ...more }, body }));
}

test('a server without authentication answers only under its own names and IP addresses', async t => {
  const { urls } = await openServers(t, { hosts: HOSTS });
  for (const [kind, requests] of Object.entries(REQUESTS)) {
    const url = urls[kind as keyof typeof urls];
    for (const [name, { form, ...request }] of Object.entries(requests)) {
      await t.test(`${kind}, ${name}: every rebound name is refused with 421 in the form of its binding`, async () => {
        for (const host of REBOUND) {
          const { status, body } = await send(url, request, { host });
          assert.equal(status, 421, host);
          assert.match(body, form);
          assert.match(body, /HOPLINE_ALLOWED_HOSTS|HOPLINE_PROBE_PORT/);
          assert.doesNotMatch(body, /evil|nip|secret_metric/);
        }
      });
      // Probes ask for no credentials, so they do not answer under names that a public route may have.
      const isBesideA2A = kind !== 'probes' && PROBES.has(name);
      const served = isBesideA2A ? ALLOWED.filter(isAddress) : ALLOWED;
      await t.test(`${kind}, ${name}: ${isBesideA2A ? '' : 'every own name and '}every address is served`, async () => {
        for (const host of ALLOWED)
          assert.equal((await send(url, request, { host })).status !== 421, served.includes(host), host);
      });
    }
    const first = Object.values(requests)[0]!;
    await t.test(`${kind}: one other name among several Hosts is refused`, async () => {
      for (const host of [
        ['localhost', 'evil.example'],
        ['evil.example', 'localhost'],
      ])
        assert.ok([400, 421].includes((await send(url, first, { host })).status), host.join());
    });
    await t.test(`${kind}: the authority of an absolute target is a Host too`, async () => {
      const [method, path] = first.line.split(' ');
      const absolute = { ...first, line: `${method} http://evil.example${path}` };
      assert.equal((await send(url, absolute, { host: 'localhost' })).status, 421);
    });
  }
});

test('gRPC without authentication checks :authority', async t => {
  const { grpc } = await openServers(t, { hosts: HOSTS });
  const call = async (authority: string, procedure: 'list' | 'card') => {
    const client = new GrpcClient(grpc, { 'grpc.default_authority': authority });
    t.after(() => client.close());
    try {
      await (procedure === 'list' ? client.call('ListTasks', {}) : client.call('GetAgentCard', {}, { version: '0.3' }));
      return 'ok';
    } catch (error) {
      assert.ok(error instanceof CallFailed, String(error));
      return error.code;
    }
  };
  const PERMISSION_DENIED = 7;
  for (const authority of REBOUND)
    await t.test(`${authority} is refused`, async () => {
      assert.deepEqual([await call(authority, 'list'), await call(authority, 'card')], [PERMISSION_DENIED, PERMISSION_DENIED]);
    });
  for (const authority of ALLOWED)
    await t.test(`${authority} is served`, async () => {
      assert.deepEqual([await call(authority, 'list'), await call(authority, 'card')], ['ok', 'ok']);
    });
});

const PAGE = 'https://page.example';
const OTHERS = [
  'https://evil.example',
  'http://localhost:3000',
  'http://127.0.0.1',
  'null',
  'https://page.example.evil.example',
  'file://',
];

/** Requests that change state or cost resources. */
const STATE_CHANGING: Record<string, RawRequest> = {
  'JSON-RPC': { line: 'POST /', headers: { ...json, ...v1 }, body: rpc('CancelTask', { id: 'x' }) },
  'message:send': { line: 'POST /message:send', headers: { ...json, ...v1 }, body: '{}' },
  cancel: { line: 'POST /tasks/x:cancel', headers: v1 },
  'cancel of 0.3': { line: 'POST /v1/tasks/x:cancel', headers: json },
  'delete of a webhook': { line: 'DELETE /tasks/x/pushNotificationConfigs/y', headers: v1 },
};

test('a page of another origin changes nothing on a server without authentication', async t => {
  const options = { hosts: HOSTS, publicUrl: 'https://public.example/a2a', cors: { origins: [PAGE], requestHeaders: [] } };
  const { urls } = await openServers(t, options);
  for (const kind of ['ingress', 'sub-agent'] as const) {
    for (const [name, request] of Object.entries(STATE_CHANGING)) {
      await t.test(`${kind}, ${name}: an origin that HOPLINE_CORS_ORIGINS does not list is refused with 403`, async () => {
        for (const origin of OTHERS) {
          const { status, body } = await send(urls[kind], request, { host: 'localhost:8000', origin });
          assert.equal(status, 403, origin);
          assert.match(body, /HOPLINE_CORS_ORIGINS/);
        }
      });
      await t.test(`${kind}, ${name}: a listed origin, the server's own and no origin are served`, async () => {
        for (const origin of [PAGE, 'http://localhost:8000', 'https://public.example', []])
          assert.ok(
            ![403, 421].includes((await send(urls[kind], request, { host: 'localhost:8000', origin })).status),
            String(origin),
          );
      });
    }
    await t.test(`${kind}: a request without a Host has no origin that counts as the server's own`, async () => {
      const text = 'POST /v1/tasks/x:cancel HTTP/1.0\r\ncontent-type: application/json\r\norigin: null\r\n\r\n';
      assert.equal((await exchangeRaw(urls[kind], text)).status, 403);
    });
    const bodyless = { line: 'POST /tasks/x:cancel?A2A-Version=1.0' };
    await t.test(`${kind}: a POST without a body needs a header that pages cannot send without a preflight`, async () => {
      for (const line of [bodyless.line, 'POST /v1/tasks/x:cancel', 'POST /v1/tasks/x:subscribe']) {
        const { status, body } = await send(urls[kind], { line }, { host: 'localhost' });
        assert.ok([400, 415].includes(status), `${line}: ${status}`);
        assert.match(body, /content-type: application\/json/);
      }
    });
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'text/plain;application/json',
    ])
      await t.test(`${kind}: a POST without a body is refused with the form's type ${type}`, async () => {
        for (const more of [{}, { 'content-length': '0' }]) {
          const { status, body } = await send(urls[kind], bodyless, { host: 'localhost', 'content-type': type, ...more });
          assert.ok([400, 415].includes(status), `${type}: ${status}`);
          assert.doesNotMatch(body, /TASK_NOT_FOUND/);
        }
      });
    for (const header of ['content-type: application/json', 'a2a-version: 1.0', 'x-requested-with: x'])
      await t.test(`${kind}: a POST without a body is served with ${header}`, async () => {
        const [name = '', value = ''] = header.split(': ');
        const { status, body } = await send(urls[kind], bodyless, { host: 'localhost', [name]: value });
        assert.equal(status, 404);
        assert.match(body, /TASK_NOT_FOUND/);
      });
  }
});

test('with HOPLINE_CORS_ORIGINS=* every page is served', async t => {
  const { urls } = await openServers(t, { cors: { origins: '*', requestHeaders: [] } });
  assert.equal((await send(urls.ingress, STATE_CHANGING.cancel!, { host: 'localhost', origin: 'null' })).status, 404);
});

test('with authentication, credentials protect A2A whatever Host and Origin are; probes and metrics still check Host', async t => {
  const auth = keyAuth();
  const { urls } = await openServers(t, { auth });
  const other = { host: 'evil.example', origin: 'https://evil.example' };
  for (const kind of ['ingress', 'sub-agent'] as const) {
    for (const [name, request] of Object.entries(STATE_CHANGING)) {
      await t.test(`${kind}, ${name}: 401 without credentials`, async () => {
        assert.equal((await send(urls[kind], request, other)).status, 401);
      });
      await t.test(`${kind}, ${name}: served behind a proxy with another name`, async () => {
        const { status } = await send(urls[kind], request, { ...other, 'x-api-key': 'right' });
        assert.ok([200, 400, 404].includes(status), String(status));
      });
    }
    for (const path of ['/metrics', '/readyz', '/livez'])
      await t.test(`${kind}, ${path}: 421 for another name`, async () => {
        assert.equal((await send(urls[kind], { line: `GET ${path}` }, other)).status, 421);
        assert.equal((await send(urls[kind], { line: `GET ${path}` }, { host: '10.0.0.7:8000' })).status, 200);
      });
  }
});

/** Accepts a single key. */
function keyAuth(): Authenticator {
  const card = { securitySchemes: {}, securityRequirements: [], security: [] };
  return {
    authenticate: async ({ headers }) => {
      if (headers['x-api-key'] === 'right') return { subject: 'a' };
      throw new A2AError('UNAUTHENTICATED', { challenge: 'ApiKey' });
    },
    card,
    checks: [],
    close: () => {},
  };
}
