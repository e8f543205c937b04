import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromBinary, toJson } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { A2A_ERRORS, A2AError, type A2AErrorCode } from '@hopline/a2a';
import { messageType, registry } from './messages.ts';
import { grpcStatus } from './status.ts';

const STATUS = messageType('google.rpc.Status');
const detailsOf = (bytes: Uint8Array) => toJson(STATUS, fromBinary(STATUS, bytes), { registry });

test('every error of the catalogue has a gRPC status, and its reason in the details [S3-21]', () => {
  const asksToRetry = ['UNAVAILABLE', 'QUOTA_EXCEEDED'];
  for (const name of Object.keys(A2A_ERRORS) as A2AErrorCode[]) {
    const error = new A2AError(name);
    const { code, message, details } = grpcStatus(error, 1_500);
    assert.equal(status[code], A2A_ERRORS[name].grpc);
    const info = {
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason: name,
      domain: 'a2a-protocol.org',
      metadata: { retryable: String(error.retryable) },
    };
    const retry = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1.500s' };
    assert.deepEqual(detailsOf(details), { code, message, details: asksToRetry.includes(name) ? [info, retry] : [info] });
  }
});

test('the details name the task and whether to retry', () => {
  const { message, details } = grpcStatus(new A2AError('TASK_NOT_FOUND', { taskId: 't', detail: 'ended' }), 1_000);
  assert.equal(message, 'Task not found: ended');
  const { details: infos } = detailsOf(details) as { details: { metadata: object }[] };
  assert.deepEqual(infos[0]?.metadata, { taskId: 't', retryable: 'false' });
});
