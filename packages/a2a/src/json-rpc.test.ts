import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRequest, RPC_ID_CHARS_MAX, rpcSuccessAround } from './json-rpc.ts';
import { JSON_DEPTH_MAX } from './json-value.ts';

const request = { jsonrpc: '2.0', id: 1, method: 'm', params: { a: 1 } };

function refused(body: unknown): [code: string, id: unknown] {
  const parsed = parseRequest(body);
  assert('error' in parsed);
  return [parsed.error.code, parsed.id];
}

test('an absent jsonrpc is tolerated, a wrong one is not [C-26 S0-33]', () => {
  const { jsonrpc: _jsonrpc, ...without } = request;
  assert.deepEqual(parseRequest(without), { request: { id: 1, method: 'm', params: { a: 1 } } });
  for (const jsonrpc of ['1.0', 2, null, '']) assert.deepEqual(refused({ ...request, jsonrpc }), ['INVALID_REQUEST', 1]);
});

test('the id keeps its type: string, number, null [S0-5]', () => {
  for (const id of ['1', 1, 0, -1.5, '', null, 'ü✅'.repeat(10)]) {
    const parsed = parseRequest({ ...request, id });
    assert('request' in parsed);
    assert.equal(parsed.request.id, id);
    const { before, after } = rpcSuccessAround(id);
    assert.deepEqual(JSON.parse(`${before}{}${after}`), { jsonrpc: '2.0', id, result: {} });
  }
  const { id: _id, ...without } = request;
  assert.deepEqual(parseRequest(without), { request: { id: null, method: 'm', params: { a: 1 } } });
});

test('an invalid request is INVALID_REQUEST, with its id when readable [S3-19 S4-30]', () => {
  for (const body of [undefined, null, 'x', 7, [], [request]]) assert.deepEqual(refused(body), ['INVALID_REQUEST', null]);
  for (const id of [{}, [], true, 'i'.repeat(RPC_ID_CHARS_MAX + 1)])
    assert.deepEqual(refused({ ...request, id }), ['INVALID_REQUEST', null]);
  for (const method of [undefined, null, '', 7, {}]) assert.deepEqual(refused({ ...request, method }), ['INVALID_REQUEST', 1]);
  assert.equal('request' in parseRequest({ ...request, id: 'i'.repeat(RPC_ID_CHARS_MAX) }), true);
});

test('params may nest to the limit and no deeper', () => {
  const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) });
  assert.equal('request' in parseRequest({ ...request, params: nested(JSON_DEPTH_MAX) }), true);
  assert.deepEqual(refused({ ...request, params: nested(JSON_DEPTH_MAX + 1) }), ['INVALID_PARAMS', 1]);
  const bomb = JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`) as unknown;
  assert.deepEqual(refused({ ...request, params: bomb }), ['INVALID_PARAMS', 1]);
});
