import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { A2A_ERRORS, A2AError } from './errors.ts';
import { rpcFailure } from './json-rpc.ts';

test('ERRORS.md and the catalogue list the same errors [S3-21 C-12]', () => {
  const document = readFileSync(new URL('../ERRORS.md', import.meta.url), 'utf8');
  const rows = [...document.matchAll(/^\| `([A-Z_]+)` *\| *(-\d+) *\| *(\d+) *\| ([A-Z_]+) *\| (yes|no) *\| (.+?) *\|/gm)];
  const written = Object.fromEntries(
    rows.map(([, code, rpc, http, grpc, retryable, text]) => [
      code,
      { rpc: Number(rpc), http: Number(http), grpc, retryable: retryable === 'yes', text },
    ]),
  );
  assert.deepEqual(written, A2A_ERRORS);
});

test('the numbers are those of 1.0, of its draft 1.1 and of JSON-RPC [C-12]', () => {
  const numbers = new Set(Object.values(A2A_ERRORS).map(row => row.rpc));
  const expected = [-32700, -32600, -32601, -32602, -32603, ...Array.from({ length: 10 }, (_, n) => -32001 - n)];
  assert.deepEqual(numbers, new Set(expected));
});

test('data is an array of typed details in 1.0 and a plain object in 0.3 [S4-39]', () => {
  const error = new A2AError('INTERNAL_ERROR', { taskId: 't1' });
  assert.deepEqual(rpcFailure(7, error, '0.3'), {
    jsonrpc: '2.0',
    id: 7,
    error: { code: -32603, message: 'Internal error', data: { taskId: 't1', reason: 'INTERNAL_ERROR', retryable: true } },
  });
  assert.deepEqual(rpcFailure('r', error, '1.0'), {
    jsonrpc: '2.0',
    id: 'r',
    error: {
      code: -32603,
      message: 'Internal error',
      data: [
        {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason: 'INTERNAL_ERROR',
          domain: 'a2a-protocol.org',
          metadata: { retryable: 'true', taskId: 't1' },
        },
      ],
    },
  });
});

test('the message, cause and stack of an internal error never reach the wire [S4-33]', () => {
  const cause = new Error('password=hunter2 at db.internal', { cause: new Error('deeper secret') });
  for (const thrown of [cause, 'hunter2', { hunter2: true }, undefined, new A2AError('UNAVAILABLE', { cause })]) {
    const error = A2AError.from(thrown);
    for (const dialect of ['1.0', '0.3'] as const) {
      const wire = JSON.stringify(rpcFailure(null, error, dialect));
      assert.doesNotMatch(wire, /hunter2|secret|errors\.test|at /);
    }
  }
  assert.equal(A2AError.from(cause).cause, cause);
  assert.equal(A2AError.from(cause).code, 'INTERNAL_ERROR');
});
