import assert from 'node:assert/strict';
import { test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { LIMITS } from '@hopline/a2a-server';
import { CallFailed, type GrpcClient, userMessage } from './grpc-client.test-kit.ts';
import { openRig } from './rig.test-kit.ts';

const MESSAGE = userMessage('x'.repeat(10_000), { messageId: 'm', contextId: 'c' });

const READS: Readonly<Record<string, (client: GrpcClient, taskId: string) => Promise<unknown>>> = {
  'GetTask of 1.0': (client, id) => client.call('GetTask', { id }),
  'GetTask of 0.3': (client, id) => client.call('GetTask', { name: `tasks/${id}` }, { version: '0.3' }),
  'ListTasks of 1.0': client => client.call('ListTasks', { includeArtifacts: true, historyLength: 10 }),
  'a message that was sent before': client => client.call('SendMessage', { message: MESSAGE }),
};

for (const [name, read] of Object.entries(READS)) {
  test(`${name}: its bytes count against the budget, and beyond it the call fails with RESOURCE_EXHAUSTED and RetryInfo`, async t => {
    const budget = { ownerSentBytesPerSecond: 0.001, ownerSentBytesBurst: Number.MAX_SAFE_INTEGER };
    const limits = { ...LIMITS, ...budget };
    const rig = await openRig(t, { limits, authenticate: async () => ({ subject: 'anna' }) });
    rig.relay.onClient = taskId => rig.relay.end(taskId, 'COMPLETED');
    const { task } = await rig.client().call('SendMessage', { message: MESSAGE });
    const before = rig.totals.sent ?? 0;
    await read(rig.client(), task.id);
    const size = rig.totals.sent! - before;
    for (const [burst, answers] of [
      [2 * size - 1, 2],
      [2 * size, 3],
    ] as const) {
      limits.ownerSentBytesBurst = burst;
      const limited = await rig.another();
      const client = limited.client();
      for (let n = 1; n <= answers; n += 1) await read(client, task.id);
      await assert.rejects(read(client, task.id), thrown => {
        assert(thrown instanceof CallFailed);
        assert.equal(thrown.code, status.RESOURCE_EXHAUSTED);
        assert.match(JSON.stringify(thrown.details), /QUOTA_EXCEEDED.*RetryInfo/);
        return true;
      });
      assert.equal(limited.totals.requestsRefused, 1);
    }
  });
}
