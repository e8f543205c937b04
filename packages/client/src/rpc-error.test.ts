import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2A_ERRORS, A2AError, type A2AErrorCode, httpJsonFailure, rpcFailure } from '@hopline/a2a';
import { errorOf } from './rpc-error.ts';

const CODES = Object.keys(A2A_ERRORS) as A2AErrorCode[];

test('every error of the catalogue survives a round trip in both dialects [S3-32]', () => {
  for (const code of CODES) {
    for (const dialect of ['1.0', '0.3'] as const) {
      for (const options of [{}, { detail: 'because: of that', taskId: 't-1' }, { retryable: !A2A_ERRORS[code].retryable }]) {
        const sent = new A2AError(code, options);
        const read = errorOf(JSON.parse(JSON.stringify(rpcFailure(1, sent, dialect).error)));
        assert(read instanceof A2AError);
        assert.deepEqual(
          [read.code, read.message, read.retryable, read.taskId],
          [sent.code, sent.message, sent.retryable, sent.taskId],
        );
      }
    }
  }
});

test('a number identifies an unambiguous code; an unknown number is an internal error without retries [S3-32]', () => {
  for (const code of CODES) {
    const { rpc } = A2A_ERRORS[code];
    const first = CODES.find(one => A2A_ERRORS[one].rpc === rpc);
    assert.equal(errorOf({ code: rpc, message: 'no' }).code, first);
  }
  const strange = errorOf({ code: -32050, message: 'Out of cheese' });
  assert.deepEqual(
    [strange.code, strange.message, strange.retryable],
    ['INTERNAL_ERROR', 'Internal error: Out of cheese', false],
  );
});

test('a reason that contradicts the number, and malformed data, are ignored', () => {
  const data = [undefined, null, 7, 'x', [], [1], {}, { reason: 'TASK_NOT_FOUND', retryable: 'maybe' }, [{ reason: 'UNKNOWN' }]];
  for (const one of data) {
    const { code, retryable, taskId } = errorOf({ code: -32602, message: 5, data: one });
    assert.deepEqual([code, retryable, taskId], ['INVALID_PARAMS', false, undefined]);
  }
});

test('an error of HTTP+JSON has an HTTP status instead of the number and is identified by its reason', () => {
  const sent = new A2AError('TASK_NOT_FOUND', { taskId: 't-1' });
  const read = errorOf(JSON.parse(JSON.stringify(httpJsonFailure(sent).error)));
  assert.deepEqual([read.code, read.message, read.retryable], ['TASK_NOT_FOUND', 'Task not found', false]);
});
