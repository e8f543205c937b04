import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';
import { test } from 'node:test';
import { PARTS_MAX } from '@hopline/a2a';
import fc from 'fast-check';
import { call, openRig, type Rig, type RpcAnswer, sendParams, userMessage } from './http-server.test-kit.ts';

const HINT = 'A2A: POST / takes JSON-RPC; the agent card is at /.well-known/agent-card.json';

async function raw(
  rig: Rig,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
  path = '/',
): Promise<[status: number, answer: RpcAnswer]> {
  const response = await fetch(`${rig.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  return [response.status, (await response.json()) as RpcAnswer];
}

const text = { kind: 'message', role: 'user', messageId: 'm', parts: [{ kind: 'text', text: 'x' }] };
const rpc = (method: string, params: unknown = {}, more: object = {}) =>
  JSON.stringify({ jsonrpc: '2.0', id: 'i', method, params, ...more });

test('each mistake gets its error code, the request’s id if readable, and HTTP 200 [S4-29 S4-30 S4-31 S4-32 S3-19 C-26]', async t => {
  const rig = await openRig(t);
  const cases: [body: string | Uint8Array, code: number, id: unknown][] = [
    ['', -32700, null],
    ['{', -32700, null],
    ['{"a":1}x', -32700, null],
    [Buffer.from([0x22, 0xff, 0x22]), -32700, null],
    ['7', -32600, null],
    ['null', -32600, null],
    ['[]', -32600, null],
    [`[${rpc('tasks/get', { id: 'x' })}]`, -32600, null],
    ['{"id":5}', -32600, 5],
    [rpc('tasks/get', { id: 'x' }, { jsonrpc: '1.0' }), -32600, 'i'],
    [rpc('tasks/get', { id: 'x' }, { id: {} }), -32600, null],
    [rpc('tasks/fly'), -32601, 'i'],
    [rpc('GetTask', { id: 'x' }), -32601, 'i'],
    [rpc('message/send', {}), -32602, 'i'],
    [rpc('message/send', { message: { ...text, role: 'admin' } }), -32602, 'i'],
    [rpc('message/send', { message: { ...text, parts: Array(PARTS_MAX + 1).fill(text.parts[0]) } }), -32602, 'i'],
    [rpc('tasks/get', '{"id":1}'), -32602, 'i'],
    [rpc('tasks/get', { id: 'x' }), -32001, 'i'],
    [rpc('tasks/pushNotificationConfig/get', { id: 'x' }), -32003, 'i'],
  ];
  for (const path of ['/', '/a2a']) {
    for (const [body, code, id] of cases) {
      const [status, answer] = await raw(rig, body, {}, path);
      assert.deepEqual([status, answer.jsonrpc, answer.id, answer.error?.code], [200, '2.0', id, code], String(body));
    }
  }
  assert.deepEqual(rig.lines, []);
});

test('the version selects the dialect of the response and of errors [C-6]', async t => {
  const rig = await openRig(t);
  const answer = async (headers: Record<string, string>, path = '/') =>
    (await raw(rig, rpc('GetTask', { id: 'x' }), headers, path))[1].error;
  assert.equal((await answer({ 'a2a-version': '1.0' }))?.code, -32001);
  assert.equal((await answer({ 'a2a-version': '1.0.7' }))?.code, -32001);
  assert.equal((await answer({}, '/?A2A-Version=1.0'))?.code, -32001);
  const hint = await answer({});
  assert.equal(hint?.code, -32601);
  assert.match(hint!.message, /requires A2A-Version: 1\.0/);
  assert.deepEqual(hint?.data, { reason: 'METHOD_NOT_FOUND', retryable: false }, 'S4-39 plain in 0.3');
  const unreadable = async (headers: Record<string, string>) => (await raw(rig, '{', headers))[1].error?.data;
  assert.deepEqual(await unreadable({}), { reason: 'PARSE_ERROR', retryable: false }, 'S4-39 a parse error, too');
  assert.equal((await unreadable({ 'a2a-version': '1.0' }))[0].reason, 'PARSE_ERROR');
  assert.equal((await unreadable({ 'a2a-version': '2.0' }))[0].reason, 'PARSE_ERROR');
  const version = await answer({ 'a2a-version': '2.0' });
  assert.deepEqual([version?.code, version?.data[0].reason], [-32009, 'VERSION_NOT_SUPPORTED']);
});

test('a server fault is INTERNAL_ERROR without details; the log has them [S4-33]', async t => {
  const rig = await openRig(t);
  rig.log.facts.last = async () => {
    throw new Error('secret at /srv/db');
  };
  const [status, answer] = await raw(rig, rpc('tasks/get', { id: 'x' }));
  assert.deepEqual(
    [status, answer.error],
    [200, { code: -32603, message: 'Internal error', data: { taskId: 'x', reason: 'INTERNAL_ERROR', retryable: true } }],
  );
  assert.equal(rig.lines.length, 1);
  assert.equal((rig.lines[0]!.fields.err as Error).message, 'secret at /srv/db');
});

test('transport faults (size, type, path) have an HTTP status and a JSON body', async t => {
  const rig = await openRig(t, { limits: { bodyBytesMax: 1000 } });
  const padded = (bytes: number) =>
    rpc('tasks/get', { id: 'x', pad: '' }).replace(
      '""',
      `"${'p'.repeat(bytes - rpc('tasks/get', { id: 'x', pad: '' }).length)}"`,
    );
  assert.deepEqual((await raw(rig, padded(1000)))[1].error?.code, -32001);
  const [tooLarge, answer] = await raw(rig, padded(1001));
  assert.deepEqual([tooLarge, answer.error?.code], [413, -32600]);
  assert.deepEqual(answer.error?.data, { reason: 'REQUEST_TOO_LARGE', retryable: false });
  const [, answer10] = await raw(rig, padded(1001), { 'a2a-version': '1.0' });
  assert.equal(answer10.error?.data[0].reason, 'REQUEST_TOO_LARGE');
  const [type, typed] = await raw(rig, '<a/>', { 'content-type': 'text/xml' });
  assert.deepEqual([type, typed.error?.code], [415, -32005]);
  assert.equal(
    (await raw(rig, rpc('tasks/get', { id: 'x' }), { 'content-type': 'application/a2a+json; charset=utf-8' }))[0],
    200,
  );
  for (const [method, path] of [
    ['GET', '/'],
    ['GET', '/nothing'],
    ['POST', '/nothing'],
    ['DELETE', '/a2a'],
  ] as const) {
    const response = await fetch(`${rig.url}${path}`, { method });
    assert.deepEqual([response.status, await response.json()], [404, { error: 'not found', hint: HINT }]);
  }
});

test('deep nesting and prototype members are harmless', async t => {
  const rig = await openRig(t);
  const deep = `{"id":1,"method":"message/send","params":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  assert.equal((await raw(rig, deep))[1].error?.code, -32602);
  const bomb = '['.repeat(400_000);
  assert.equal((await raw(rig, bomb))[1].error?.code, -32700);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const polluted =
    '{"id":1,"method":"message/send","params":{"message":{"role":"user","messageId":"m","parts":[{"kind":"text","text":"x"}],"metadata":{"__proto__":{"polluted":1},"own":1}}}}';
  const [, answer] = await raw(rig, polluted);
  assert.equal(answer.result.status.state, 'completed');
  assert.equal(({} as { polluted?: number }).polluted, undefined);
});

test('any POST gets a JSON-RPC response and never a 500 [S4-33]', async t => {
  const rig = await openRig(t);
  const member = fc.constantFrom(
    'jsonrpc',
    'id',
    'method',
    'params',
    'message',
    'parts',
    'role',
    'taskId',
    'metadata',
    'configuration',
  );
  const known = fc.constantFrom<unknown>(
    '2.0',
    'message/send',
    'tasks/get',
    'GetTask',
    'user',
    { id: 'x' },
    [{ kind: 'text', text: '' }],
    null,
  );
  const body = fc.oneof(
    fc.json(),
    fc.string(),
    fc.dictionary(member, fc.oneof(known, fc.jsonValue())).map(value => JSON.stringify({ method: 'message/send', ...value })),
  );
  await fc.assert(
    fc.asyncProperty(body, fc.constantFrom('1.0', '', '0.3', '9'), async (sent, version) => {
      const [status, answer] = await raw(rig, sent, { 'a2a-version': version });
      assert.equal(status, 200);
      assert.equal(typeof answer.error?.code, 'number');
      assert.equal('result' in answer, false);
    }),
    { numRuns: 150 },
  );
  assert.deepEqual(rig.lines, []);
});

test('one connection serves requests up to its limit', async t => {
  const rig = await openRig(t, { limits: { requestsPerConnectionMax: 2 } });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const connections: (string | undefined)[] = [];
  for (let n = 0; n < 2; n += 1) {
    const { promise, resolve } = Promise.withResolvers<void>();
    httpRequest(`${rig.url}/`, { method: 'POST', agent, headers: { 'content-type': 'application/json' } }, response => {
      connections.push(response.headers.connection);
      response.resume().on('end', resolve);
    }).end('{}');
    await promise;
  }
  assert.deepEqual(connections, ['keep-alive', 'close']);
});

test('the card is at both well-known paths, with an ETag [S3-1 C-13]', async t => {
  const rig = await openRig(t);
  const since = new Set<string | null>();
  const paths = ['/.well-known/agent-card.json', '/.well-known/agent.json'];
  for (const path of paths.flatMap(one => [one, `/a2a${one}`])) {
    const response = await fetch(`${rig.url}${path}`);
    const card = (await response.json()) as { name: string; capabilities: { streaming: boolean } };
    assert.deepEqual([card.name, card.capabilities.streaming], ['test', true]);
    const etag = response.headers.get('etag')!;
    assert.match(response.headers.get('cache-control') ?? '', /max-age=\d+/);
    const again = await fetch(`${rig.url}${path}`, { headers: { 'if-none-match': etag } });
    assert.equal(again.status, 304);
    for (const { headers } of [response, again]) since.add(headers.get('last-modified'));
  }
  const [first, ...others] = since;
  assert.deepEqual(others, []);
  assert(Date.parse(first!) <= Date.now());
});

test('the address with a path works with and without a slash at its end', async t => {
  const rig = await openRig(t);
  for (const path of ['/', '/a2a', '/a2a/']) {
    const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body: rpc('tasks/get', { id: 'x' }) };
    const answer = (await (await fetch(`${rig.url}${path}`, request)).json()) as RpcAnswer;
    assert.equal(answer.error?.code, -32001, path);
  }
});

test('a request without an id gets id null, and one sent in pieces is read whole', async t => {
  const rig = await openRig(t);
  const answer = await new Promise<string>((resolve, reject) => {
    const sent = httpRequest(`${rig.url}/`, { method: 'POST', headers: { 'content-type': 'application/json' } }, response => {
      let body = '';
      response.on('data', chunk => {
        body += String(chunk);
      });
      response.on('end', () => resolve(body));
    });
    sent.on('error', reject);
    for (const piece of ['{"method":"tasks/', 'get","params":{"id":"ü', '✅"}}']) sent.write(piece);
    sent.end();
  });
  assert.deepEqual((JSON.parse(answer) as RpcAnswer).id, null);
  assert.deepEqual((JSON.parse(answer) as RpcAnswer).error?.code, -32001);
});

test('no text of a message is logged, whatever fails', async t => {
  const rig = await openRig(t, { limits: { firstFactMsMax: 20 } });
  rig.relay.running = false;
  rig.log.faults.refusals = 1;
  const message = userMessage('SECRET-TEXT', { contextId: 'SECRET-CONTEXT', metadata: { token: 'SECRET-TOKEN' } });
  await call(rig, 'send', sendParams(message));
  await call(rig, 'send', sendParams(message));
  const written = JSON.stringify(rig.lines, (_key, value: unknown) =>
    value instanceof Error ? `${value.message} ${String(value.cause)}` : value,
  );
  assert.match(written, /UNAVAILABLE/);
  assert.doesNotMatch(written, /SECRET/);
});
