import assert from 'node:assert/strict';
import { request } from 'node:http';
import { type TestContext, test } from 'node:test';
import { A2AError } from '@hopline/a2a';
import type { A2AServerOptions } from '@hopline/a2a-server';
import { PREFLIGHT_AGE_S } from './cors.ts';
import { openRig, type Rig, sendParams, userMessage } from './http-server.test-kit.ts';

const PAGE = 'https://page.example';
const OTHERS = [
  'https://other.example',
  'https://page.example.other.example',
  'https://page.example:8443',
  'http://page.example',
  'HTTPS://PAGE.EXAMPLE',
  `${PAGE}/`,
  `${PAGE}, https://other.example`,
  'null',
  '*',
  '',
];
const CHALLENGE = 'Bearer realm="hopline"';
const BODY_BYTES_MAX = 4_096;

const openFor = (t: TestContext, origins: readonly string[] | '*' | undefined, options: Partial<A2AServerOptions> = {}) =>
  openRig(t, {
    ...options,
    limits: { ...options.limits, bodyBytesMax: BODY_BYTES_MAX },
    ...(origins !== undefined && { cors: { origins, requestHeaders: ['X-Own-Key'] } }),
  });

type CrossOriginRequest = { path: string; method?: string; headers?: Record<string, string>; body?: string };
type Answer = { status: number; headers: Record<string, string>; body: string };

/** Does not use `fetch`, which sets `Origin` itself. Does not read the bodies of streams. */
function exchange({ url }: Rig, { path, method = 'GET', headers = {}, body }: CrossOriginRequest): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const sent = request(url, { path, method, headers, agent: false }, response => {
    const { statusCode: status = 0, headers } = response;
    const answer = (text: string) => resolve({ status, headers: headers as Record<string, string>, body: text });
    if (headers['content-type']?.startsWith('text/event-stream')) {
      answer('');
      return response.destroy();
    }
    let text = '';
    response.setEncoding('utf8').on('data', chunk => {
      text += chunk;
    });
    response.on('end', () => answer(text)).on('error', reject);
  });
  sent.on('error', reject).end(body);
  return promise;
}

const v1 = { 'a2a-version': '1.0' };
const json = { 'content-type': 'application/json', ...v1 };
const rpc = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
const stream = rpc('SendStreamingMessage', sendParams(userMessage('x')));

/** One request for each kind of response that the server gives. */
const REQUESTS: [status: number, request: CrossOriginRequest][] = [
  [200, { path: '/.well-known/agent-card.json' }],
  [200, { path: '/.well-known/agent-card.json', method: 'HEAD' }],
  [304, { path: '/.well-known/agent.json', headers: { 'if-none-match': '*' } }],
  [200, { path: '/openapi.json' }],
  [200, { path: '/', method: 'POST', headers: json, body: rpc('GetTask', { id: 'x' }) }],
  [200, { path: '/', method: 'POST', headers: json, body: stream }],
  [200, { path: '/message:stream', method: 'POST', headers: json, body: JSON.stringify(sendParams(userMessage('x'))) }],
  [200, { path: '/', method: 'POST', headers: json, body: '{' }],
  [413, { path: '/', method: 'POST', headers: json, body: ' '.repeat(BODY_BYTES_MAX + 1) }],
  [413, { path: '/message:send', method: 'POST', headers: json, body: ' '.repeat(BODY_BYTES_MAX + 1) }],
  [415, { path: '/', method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'x' }],
  [401, { path: '/', method: 'POST', headers: { ...json, 'x-stranger': '1' }, body: rpc('GetTask', { id: 'x' }) }],
  [401, { path: '/tasks/x', headers: { ...v1, 'x-stranger': '1' } }],
  [404, { path: '/tasks/x', headers: v1 }],
  [404, { path: '/v1/tasks/x' }],
  [400, { path: '/tasks/x' }],
  [400, { path: '/tasks/%zz', headers: v1 }],
  [405, { path: '/tasks', method: 'DELETE', headers: v1 }],
  [405, { path: '/tasks', method: 'HEAD', headers: v1 }],
  [404, { path: '/nothing' }],
  [404, { path: '/nothing', method: 'OPTIONS' }],
];

const authenticate: A2AServerOptions['authenticate'] = async ({ headers }) => {
  if (headers['x-stranger'] !== undefined) throw new A2AError('UNAUTHENTICATED', { challenge: CHALLENGE });
  return {};
};

const corsOf = ({ headers }: Answer) => Object.keys(headers).filter(name => name.startsWith('access-control-'));
const varies = ({ headers }: Answer) => (headers.vary ?? '').split(', ').filter(name => name !== '');

test('a listed page can read every response: cards, streams, errors, 401, 404, 413, HEAD', async t => {
  const rig = await openFor(t, ['https://first.example', PAGE], { authenticate });
  for (const [status, request] of REQUESTS) {
    const about = JSON.stringify(request).slice(0, 200);
    const answer = await exchange(rig, { ...request, headers: { ...request.headers, origin: PAGE } });
    assert.equal(answer.status, status, about);
    assert.equal(answer.headers['access-control-allow-origin'], PAGE, about);
    assert.equal(answer.headers['access-control-allow-credentials'], 'true', about);
    assert.match(
      answer.headers['access-control-expose-headers']!,
      /^etag, a2a-extensions, x-a2a-extensions, retry-after, www-authenticate, allow, server-timing, x-should-retry, stream-next-offset, stream-cursor, stream-up-to-date, stream-closed$/i,
    );
    assert.equal(answer.headers['timing-allow-origin'], PAGE, about);
    assert.ok(varies(answer).includes('origin'), about);
    if (status === 401) assert.equal(answer.headers['www-authenticate'], CHALLENGE);
  }
  const list = await exchange(rig, { path: '/tasks', headers: { ...v1, origin: PAGE } });
  assert.deepEqual(varies(list), ['origin', 'accept']);
});

test('other origins get no CORS headers, only Vary', async t => {
  const rig = await openFor(t, [PAGE], { authenticate });
  const without = await openFor(t, undefined, { authenticate });
  const bodyOf = (answer: Answer) => answer.body.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\dT[\d:.]+Z/g, '…');
  for (const [status, request] of REQUESTS) {
    for (const origin of [undefined, ...OTHERS]) {
      const about = `${origin} ${JSON.stringify(request).slice(0, 200)}`;
      const sent = { ...request, headers: { ...request.headers, ...(origin !== undefined && { origin }) } };
      const [answer, before] = [await exchange(rig, sent), await exchange(without, sent)];
      assert.deepEqual([answer.status, before.status], [status, status], about);
      assert.deepEqual([corsOf(answer), corsOf(before)], [[], []], about);
      assert.equal(bodyOf(answer), bodyOf(before), about);
      assert.deepEqual(varies(answer), ['origin', ...varies(before)], about);
    }
  }
});

const preflightHeaders = (origin: string, headers = 'content-type,a2a-version,authorization') => ({
  origin,
  'access-control-request-method': 'POST',
  'access-control-request-headers': headers,
});
const PATHS = ['/', '/a2a', '/message:send', '/tasks/x:subscribe', '/v1/tasks', '/openapi.json', '/nothing', '/tasks/%zz', '*'];

test('a preflight of a listed page is answered at every path, without credentials or log lines', async t => {
  let authentications = 0;
  const rig = await openFor(t, [PAGE], {
    authenticate: async () => {
      authentications += 1;
      throw new A2AError('UNAUTHENTICATED');
    },
  });
  for (const path of PATHS) {
    const { status, headers, body } = await exchange(rig, { path, method: 'OPTIONS', headers: preflightHeaders(PAGE) });
    assert.deepEqual([status, body], [204, ''], path);
    assert.deepEqual(
      [headers['access-control-allow-origin'], headers['access-control-allow-methods'], headers['access-control-max-age']],
      [PAGE, 'GET, HEAD, POST, DELETE', `${PREFLIGHT_AGE_S}`],
    );
    assert.deepEqual(headers['access-control-allow-headers']!.split(', '), [
      'content-type',
      'authorization',
      'a2a-version',
      'a2a-extensions',
      'x-a2a-extensions',
      'last-event-id',
      'traceparent',
      'tracestate',
      'if-none-match',
      'hopline-agent',
      'idempotency-key',
      'x-stainless-arch',
      'x-stainless-helper-method',
      'x-stainless-lang',
      'x-stainless-os',
      'x-stainless-package-version',
      'x-stainless-retry-count',
      'x-stainless-runtime',
      'x-stainless-runtime-version',
      'x-stainless-timeout',
      'x-own-key',
    ]);
    assert.equal(headers.vary, 'origin');
  }
  assert.deepEqual([authentications, rig.lines, rig.totals], [0, [], {}]);
});

test('a preflight of another origin, and other OPTIONS, get the same response as without CORS', async t => {
  const rig = await openFor(t, [PAGE]);
  const without = await openFor(t, undefined);
  for (const path of PATHS) {
    const before = await exchange(without, { path, method: 'OPTIONS', headers: preflightHeaders(PAGE) });
    assert.ok(before.status === 404 || before.status === 400, path);
    assert.deepEqual(corsOf(before), []);
    for (const headers of [...OTHERS.map(origin => preflightHeaders(origin)), {}, { 'access-control-request-method': 'POST' }]) {
      const answer = await exchange(rig, { path, method: 'OPTIONS', headers });
      assert.deepEqual([answer.status, answer.body, corsOf(answer)], [before.status, before.body, []], path);
    }
    const noPreflight = await exchange(rig, { path, method: 'OPTIONS', headers: { origin: PAGE } });
    assert.deepEqual([noPreflight.status, noPreflight.headers['access-control-allow-origin']], [before.status, PAGE], path);
  }
});

test('`*` lets every page read, with the same headers for all, and never with cookies', async t => {
  const rig = await openFor(t, '*', { authenticate });
  for (const origin of [undefined, PAGE, 'null', 'file://']) {
    const originHeader = origin === undefined ? {} : { origin };
    for (const [status, request] of REQUESTS) {
      const answer = await exchange(rig, { ...request, headers: { ...request.headers, ...originHeader } });
      assert.equal(answer.status, status);
      assert.equal(answer.headers['access-control-allow-origin'], '*');
      assert.equal(answer.headers['access-control-allow-credentials'], undefined);
      assert.ok(!varies(answer).includes('origin'));
    }
  }
  const preflight = await exchange(rig, { path: '/', method: 'OPTIONS', headers: preflightHeaders('null') });
  assert.deepEqual([preflight.status, preflight.headers['access-control-allow-origin']], [204, '*']);
  assert.equal(preflight.headers['access-control-allow-credentials'], undefined);
});

test('answers, errors and streams name their trace in Server-Timing, which a listed page may read', async t => {
  const rig = await openFor(t, [PAGE], { authenticate });
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const asked = (request: CrossOriginRequest) =>
    exchange(rig, { ...request, headers: { ...request.headers, origin: PAGE, traceparent } });
  for (const request of [
    { path: '/', method: 'POST', headers: json, body: rpc('GetTask', { id: 'x' }) },
    { path: '/', method: 'POST', headers: json, body: stream },
    { path: '/tasks/x', headers: v1 },
    { path: '/tasks', headers: v1 },
  ]) {
    const { headers } = await asked(request);
    assert.equal(headers['server-timing'], `traceparent;desc="${traceparent}"`, JSON.stringify(request).slice(0, 100));
    assert.match(headers['access-control-expose-headers']!, /server-timing/);
  }
  const untraced = await exchange(rig, { path: '/tasks', headers: { ...v1, origin: PAGE } });
  assert.equal(untraced.headers['server-timing'], undefined);
});
