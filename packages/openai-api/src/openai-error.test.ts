import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2A_ERRORS, A2AError, type A2AErrorCode } from '@hopline/a2a';
import { bodyOfError } from './openai-error.ts';

test('every error of the server has the type of its status, and the code that clients know', () => {
  for (const code of Object.keys(A2A_ERRORS) as A2AErrorCode[]) {
    const { http } = A2A_ERRORS[code];
    const { error } = bodyOfError(new A2AError(code, { detail: 'the detail' }));
    assert.equal(error.type, http === 429 ? 'rate_limit_error' : http >= 500 ? 'server_error' : 'invalid_request_error');
    assert.match(error.message, /the detail/);
  }
  const codeOf = (code: A2AErrorCode) => bodyOfError(new A2AError(code)).error.code;
  assert.deepEqual(
    [codeOf('UNAUTHENTICATED'), codeOf('QUOTA_EXCEEDED'), codeOf('TASK_NOT_FOUND'), codeOf('INVALID_PARAMS')],
    ['invalid_api_key', 'rate_limit_exceeded', 'response_not_found', null],
  );
});
