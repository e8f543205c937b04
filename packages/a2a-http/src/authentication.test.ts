import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { A2AError, type A2AErrorCode } from '@hopline/a2a';
import type { Authenticate } from '@hopline/a2a-server';
import { openRig, post, sendParams, userMessage } from './http-server.test-kit.ts';
import { UNKNOWN_CALLER_BODY_BYTES_MAX } from './request-guard.ts';
import { rest } from './rest.test-kit.ts';

const CHALLENGE = 'Bearer realm="hopline"';
const METHODS = ['send', 'stream', 'get', 'cancel', 'subscribe'] as const;
const DIALECTS = ['1.0', '0.3', 'legacy'] as const;

/** Refuses with the error that the request names. */
const authenticate: Authenticate = async ({ headers }) => {
  const code = headers['x-refuse'] as A2AErrorCode | undefined;
  if (code !== undefined) throw new A2AError(code, code === 'UNAUTHENTICATED' ? { challenge: CHALLENGE } : {});
  return {};
};

const refuse = (code: A2AErrorCode) => ({ 'x-refuse': code });
const openRefusing = (t: TestContext) => openRig(t, { authenticate });
const LEGACY_SEND = { id: 'x', message: { role: 'user', parts: [{ type: 'text', text: 'x' }] } };

test('over JSON-RPC an unauthenticated request gets 401, the challenge and an error of its dialect; nothing is stored [S4-4]', async t => {
  const rig = await openRefusing(t);
  for (const dialect of DIALECTS) {
    for (const method of METHODS) {
      const sends = method === 'send' || method === 'stream';
      const send = dialect === 'legacy' ? LEGACY_SEND : sendParams(userMessage('x'), dialect);
      const response = await post(rig, method, sends ? send : { id: 'x' }, {
        dialect,
        headers: refuse('UNAUTHENTICATED'),
        id: 7,
      });
      const { id, error } = (await response.json()) as { id: unknown; error: { code: number; message: string; data: unknown } };
      assert.deepEqual(
        [response.status, response.headers.get('www-authenticate'), id],
        [401, CHALLENGE, 7],
        `${dialect} ${method}`,
      );
      assert.deepEqual([error.code, error.message], [-32600, 'Authentication required']);
      const [detail] = Array.isArray(error.data) ? error.data : [error.data];
      assert.equal(Array.isArray(error.data), dialect === '1.0');
      assert.equal(detail.reason, 'UNAUTHENTICATED');
    }
  }
  assert.equal(await rig.log.facts.last('x'), undefined);
  assert.equal(rig.open(), 0);
  assert.deepEqual(rig.lines, [], 'requests of strangers are not logged');
});

test('over HTTP+JSON an unauthenticated request gets 401, the challenge and google.rpc.Status [S4-4]', async t => {
  const rig = await openRefusing(t);
  const headers = refuse('UNAUTHENTICATED');
  const body = { message: userMessage('x') };
  for (const [line, sent] of [
    ['POST /message:send', body],
    ['POST /message:stream', body],
    ['GET /tasks', undefined],
    ['GET /tasks/x', undefined],
    ['POST /tasks/x:cancel', undefined],
    ['GET /tasks/x:subscribe', undefined],
    ['GET /acme/tasks/x', undefined],
  ] as const) {
    const answer = await rest(rig, line, { headers, ...(sent && { body: sent }) });
    assert.deepEqual([answer.status, answer.headers.get('www-authenticate')], [401, CHALLENGE], line);
    const { code, status, details } = answer.body.error;
    assert.deepEqual([code, status, details[0].reason], [401, 'UNAUTHENTICATED', 'UNAUTHENTICATED']);
  }
});

test('the caller of a large body is identified before the body is read, the caller of a small one after it has been parsed', async t => {
  const rig = await openRefusing(t);
  const stranger = { ...refuse('UNAUTHENTICATED'), 'content-type': 'application/json', 'a2a-version': '1.0' };
  const answer = async (path: string, body: RequestInit) => {
    const response = await fetch(`${rig.url}${path}`, { method: 'POST', headers: stranger, ...body });
    return [response.status, response.headers.get('www-authenticate'), /PARSE_ERROR/.test(await response.text())];
  };
  const notJson = (bytes: number) => ({ body: '['.repeat(bytes) });
  for (const [path, parsed] of [
    ['/', 200],
    ['/message:send', 400],
  ] as const) {
    assert.deepEqual(await answer(path, notJson(UNKNOWN_CALLER_BODY_BYTES_MAX)), [parsed, null, true]);
    assert.deepEqual(await answer(path, notJson(UNKNOWN_CALLER_BODY_BYTES_MAX + 1)), [401, CHALLENGE, false]);
    const chunked = { body: new Blob(['[']).stream(), duplex: 'half' } as RequestInit;
    assert.deepEqual(await answer(path, chunked), [401, CHALLENGE, false], 'of unknown length');
  }
  assert.deepEqual(rig.lines, [], 'requests of strangers are not logged');
  const large = sendParams(userMessage('x'.repeat(UNKNOWN_CALLER_BODY_BYTES_MAX)), '1.0', { blocking: false });
  assert.equal((await post(rig, 'send', large)).status, 200);
});

test('responses are not cacheable', async t => {
  const rig = await openRefusing(t);
  const answer = await rest(rig, 'GET /tasks');
  assert.deepEqual([answer.status, answer.headers.get('cache-control')], [200, 'no-store']);
});

test('a forbidden request gets 403, an unverifiable one 503, in every binding', async t => {
  const rig = await openRefusing(t);
  for (const [code, status] of [
    ['PERMISSION_DENIED', 403],
    ['UNAVAILABLE', 503],
  ] as const) {
    const headers = refuse(code);
    assert.equal((await post(rig, 'get', { id: 'x' }, { headers })).status, status);
    const answer = await rest(rig, 'GET /tasks/x', { headers });
    assert.deepEqual([answer.status, answer.body.error.status], [status, code]);
  }
});
