import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { PUSH_CONFIGS_MAX } from '@hopline/a2a';
import { call, openRig, post, sendParams, userMessage } from './http-server.test-kit.ts';
import { type RestRequest, rest } from './rest.test-kit.ts';

const HINT = 'A2A: POST / takes JSON-RPC; the agent card is at /.well-known/agent-card.json';

/** Requests found by a fuzzer. Each was once answered wrongly, or had an effect although it was refused. */

/** Bytes that the server reserves in a record. */
const ENVELOPE_BYTES = 32 * 1024;
const RECORD_BYTES_MAX = 128 * 1024;

test('a message too large for the log does not claim its id: a shorter one may use it', async t => {
  const rig = await openRig(t, { memory: { recordBytesMax: RECORD_BYTES_MAX } });
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const claims: string[] = [];
  const create = rig.log.messageIds.create.bind(rig.log.messageIds);
  rig.log.messageIds.create = (key, value) => {
    claims.push(key);
    return create(key, value);
  };
  const empty = Buffer.byteLength(JSON.stringify(userMessage('', { messageId: 'm', contextId: 'c' })));
  // Absent metadata takes two bytes (its braces) in each of the two places.
  const room = RECORD_BYTES_MAX - ENVELOPE_BYTES - empty - 4;
  const ofLength = (chars: number) => userMessage('x'.repeat(chars), { messageId: 'm', contextId: 'c' });
  const refused = await post(rig, 'send', sendParams(ofLength(room + 1)));
  assert.deepEqual([refused.status, claims], [413, []]);
  assert.equal((await call(rig, 'send', sendParams(ofLength(room)))).result.task.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(claims.length, 1);
});

test('request metadata counts twice, because the first fact of a task contains it twice', async t => {
  const rig = await openRig(t, { memory: { recordBytesMax: RECORD_BYTES_MAX } });
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const params = (chars: number) => ({ ...sendParams(userMessage('x')), metadata: { a: 'x'.repeat(chars) } });
  assert.equal((await post(rig, 'send', params(RECORD_BYTES_MAX / 2))).status, 413);
  assert.equal((await call(rig, 'send', params(RECORD_BYTES_MAX / 4))).result.task.status.state, 'TASK_STATE_COMPLETED');
});

test('two message ids that differ only in a lone surrogate are two messages [S1-9]', async t => {
  const rig = await openRig(t, { limits: { firstFactMsMax: 2_000 } });
  rig.relay.onClient = taskId => rig.relay.end(taskId, 'INPUT_REQUIRED');
  const { result } = await call(rig, 'send', sendParams(userMessage('a', { messageId: '\ud800' })));
  const { id: taskId } = result.task;
  const next = await call(rig, 'send', sendParams(userMessage('b', { messageId: '\ud801', taskId })));
  assert.equal(next.error, undefined, 'the log treated it as a retry of the first one, which was never answered');
  const userMessages = next.result.task.history.filter(({ role }: { role: string }) => role === 'ROLE_USER');
  assert.equal(userMessages.length, 2);
});

test('a tenant that is not a string is refused, not ignored', async t => {
  const rig = await openRig(t);
  for (const tenant of [['acme'], 7, {}, true]) {
    assert.equal((await call(rig, 'list', { tenant })).error?.code, -32602, JSON.stringify(tenant));
  }
  assert.equal((await rest(rig, 'GET /tasks?tenant=acme&tenant=acme')).status, 400);
  for (const tenant of [null, '']) assert.equal((await call(rig, 'list', { tenant })).error, undefined);
});

test('a part whose only member is null is refused [S4-32]', async t => {
  const rig = await openRig(t);
  for (const part of [{ raw: null }, { text: null }, { url: null }]) {
    const params = { message: { ...userMessage('x'), parts: [part] } };
    assert.equal((await call(rig, 'send', params)).error?.code, -32602, JSON.stringify(part));
  }
});

test('whatever the body is, an unknown path gets 404 and an unsupported method 405', async t => {
  const rig = await openRig(t, { limits: { bodyBytesMax: 100 } });
  const bodies: RestRequest[] = [
    { raw: '{', headers: { 'content-type': 'application/json' } },
    { raw: '<a/>', headers: { 'content-type': 'text/xml' } },
    { raw: 'x'.repeat(1_000) },
  ];
  for (const body of bodies) {
    for (const line of ['POST /nothing', 'PUT /nothing', 'QUERY /nothing', 'POST /tasks/a/b/c/d/e']) {
      const { status, body: answer } = await rest(rig, line, body);
      assert.deepEqual([status, answer], [404, { error: 'not found', hint: HINT }], line);
    }
    for (const method of ['PUT', 'PATCH', 'QUERY']) {
      const { status, headers, body: answer } = await rest(rig, `${method} /tasks`, body);
      assert.deepEqual([status, headers.get('allow'), answer.error.details[0].reason], [405, 'GET', 'METHOD_NOT_FOUND'], method);
    }
  }
  assert.equal((await rest(rig, 'QUERY /v1/tasks', { headers: { 'a2a-version': '' } })).status, 405);
});

test('a compressed body is refused with the coding that is accepted, in every binding; identity is accepted', async t => {
  const rig = await openRig(t);
  const json = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: 'x' } });
  for (const path of ['/', '/message:send', '/v1/message:send']) {
    const version = path.startsWith('/v1') ? '0.3' : '1.0';
    const headers = { 'content-type': 'application/json', 'a2a-version': version };
    for (const coding of ['gzip', 'br', 'identity, gzip']) {
      const request = { method: 'POST', headers: { ...headers, 'content-encoding': coding }, body: gzipSync(json) };
      const response = await fetch(rig.url + path, request);
      const text = await response.text();
      assert.deepEqual([response.status, response.headers.get('accept-encoding')], [415, 'identity'], path);
      assert.match(text, /CONTENT_TYPE_NOT_SUPPORTED/);
      assert.match(text, /the body must not be compressed/);
    }
    const plain = await fetch(rig.url + path, {
      method: 'POST',
      headers: { ...headers, 'content-encoding': 'Identity' },
      body: json,
    });
    assert.doesNotMatch(await plain.text(), /compressed/);
  }
});

test('framework faults below /v1 are reported in the form of the request’s version', async t => {
  const rig = await openRig(t);
  const sent = (version: string) =>
    rest(rig, 'POST /v1/message:send', { raw: '<a/>', headers: { 'content-type': 'text/xml', 'a2a-version': version } });
  assert.equal((await sent('1.0')).body.error.details[0].reason, 'CONTENT_TYPE_NOT_SUPPORTED');
  assert.equal((await sent('0.3')).body.data.reason, 'CONTENT_TYPE_NOT_SUPPORTED');
});

test('a request that the framework refuses is counted once, in every binding', async t => {
  const bodyBytesMax = 1_024;
  for (const [path, version] of [
    ['/', '1.0'],
    ['/message:send', '1.0'],
    ['/v1/message:send', '0.3'],
  ] as const) {
    const rig = await openRig(t, { limits: { bodyBytesMax } });
    const headers = { 'content-type': 'application/json', 'a2a-version': version };
    const { status } = await fetch(rig.url + path, { method: 'POST', headers, body: ' '.repeat(bodyBytesMax + 1) });
    assert.deepEqual([status, rig.totals.requests, rig.totals.requestErrors], [413, 1, 1], path);
  }
});

test('a push configuration beyond the bound is refused without a write', async t => {
  const rig = await openRig(t, { push: true });
  rig.relay.onClient = taskId => rig.relay.end(taskId, 'INPUT_REQUIRED');
  const { result } = await call(rig, 'send', sendParams(userMessage('x')));
  const taskId = result.task.id as string;
  const set = (id: string) => call(rig, 'createPush', { taskId, id, url: 'https://example.org/' });
  for (let n = 1; n <= PUSH_CONFIGS_MAX; n += 1) assert.equal((await set(`c${n}`)).error, undefined);
  let writes = 0;
  const { put } = rig.log.pushConfigs;
  rig.log.pushConfigs.put = (...args) => {
    writes += 1;
    return put.apply(rig.log.pushConfigs, args);
  };
  assert.deepEqual([(await set('one-more')).error?.code, writes], [-32004, 0]);
  assert.deepEqual([(await set('c1')).error, writes], [undefined, 0], 'the same again is there already');
});
