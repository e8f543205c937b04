import assert from 'node:assert/strict';
import { test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { LIMITS } from '@hopline/a2a-server';
import { CallFailed, userMessage } from './grpc-client.test-kit.ts';
import { openRig } from './rig.test-kit.ts';

test('a limit of the caller is RESOURCE_EXHAUSTED with RetryInfo, for calls and for streams', async t => {
  const rig = await openRig(t, { limits: { ...LIMITS, ownerMessagesPerSecond: 0.02, ownerMessagesBurst: 1 } });
  const client = rig.client();
  const params = () => ({ message: userMessage('x'), configuration: { returnImmediately: true } });
  await client.call('SendMessage', params());
  const isRefused = (thrown: unknown) => {
    assert(thrown instanceof CallFailed);
    assert.equal(thrown.code, status.RESOURCE_EXHAUSTED);
    assert.match(JSON.stringify(thrown.details), /QUOTA_EXCEEDED.*"retryDelay":"\d.*RetryInfo/);
    return true;
  };
  await assert.rejects(client.call('SendMessage', params()), isRefused);
  await assert.rejects(client.stream('SendStreamingMessage', params()).take(1), isRefused);
});
