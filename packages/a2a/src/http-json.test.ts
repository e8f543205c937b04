import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { A2A_ERRORS, A2AError, type A2AErrorCode } from './errors.ts';
import { httpJsonFailure, paramsOfBody, paramsOfQuery } from './http-json.ts';

test('every row of the catalogue becomes a google.rpc.Status whose code is the HTTP status [C-12 S3-21]', () => {
  for (const [code, row] of Object.entries(A2A_ERRORS)) {
    const failure = httpJsonFailure(new A2AError(code as A2AErrorCode, { taskId: 't', cause: new Error('secret') }));
    assert.deepEqual(failure, {
      error: {
        code: row.http,
        status: row.grpc,
        message: row.text,
        details: [
          {
            '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
            reason: code,
            domain: 'a2a-protocol.org',
            metadata: { retryable: String(row.retryable), taskId: 't' },
          },
        ],
      },
    });
  }
  assert.equal(httpJsonFailure(new A2AError('METHOD_NOT_FOUND'), 405).error.code, 405);
});

test('query parameters get the type of their field, by both of its names; others stay strings', () => {
  assert.deepEqual(
    paramsOfQuery({
      pageSize: '7',
      history_length: '0',
      min_duration_ms: '5',
      includeArtifacts: 'false',
      contextId: '12',
      status: '',
      pageToken: 'true',
    }),
    { pageSize: 7, history_length: 0, min_duration_ms: 5, includeArtifacts: false, contextId: '12', pageToken: 'true' },
  );
  for (const value of ['1.5', '1e3', ' 1', '0x1', '9'.repeat(16), ['1', '2']]) {
    assert.deepEqual(paramsOfQuery({ pageSize: value }), { pageSize: value });
  }
  assert.deepEqual(paramsOfQuery({ includeArtifacts: 'TRUE' }), { includeArtifacts: 'TRUE' });
  assert.deepEqual(paramsOfQuery(undefined), {});
});

test('a missing body counts as empty, the path wins, and the schema rejects non-objects', () => {
  const path = { id: 'p' };
  for (const body of [undefined, null, {}, { id: 'b' }]) assert.deepEqual(paramsOfBody(body, path), path);
  assert.deepEqual(paramsOfBody({ id: 'b', a: 1 }, path), { id: 'p', a: 1 });
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.integer(), fc.array(fc.string())), body => assert.equal(paramsOfBody(body, path), body)),
  );
});
