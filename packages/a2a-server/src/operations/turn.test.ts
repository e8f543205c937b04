import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { OperationContext } from '../a2a-server.ts';
import { LIMITS } from '../limits.ts';
import { openServer } from '../server.test-kit.ts';
import { appendTurn } from './turn.ts';

const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'x' }] };

/** A further message of a task that already has the message `m`, as if it had been resolved before the task had it. */
async function further(t: TestContext, messageId: string, ends: boolean) {
  const { server, log, relay } = openServer(t, { limits: { ...LIMITS, firstFactMsMax: 2_000 } });
  const input = { kind: 'message', message, contextId: 'c', role: 'supervisor', profile: 'caipe', creates: true } as const;
  const stored = Promise.withResolvers<void>();
  relay.onClient = async () => {
    if (ends) await relay.end('task');
    stored.resolve();
  };
  await log.inputs.append('task', { v: 1, at: 1, from: 'client', input }, { id: 'task:m' });
  await stored.promise;
  const lease = await server.feeds.acquire('task', 'existing', {});
  t.after(lease.release);
  const resolved = {
    kind: 'continuation',
    taskId: 'task',
    contextId: 'c',
    message: { ...message, messageId },
    metadata: undefined,
    lease,
  } as const;
  const context = { signal: new AbortController().signal } as OperationContext;
  const joined: string[] = [];
  const turn = { lease, start: 'message', append: async () => assert.fail('was appended') } as const;
  const outcome = appendTurn(server, context, turn, resolved, { onJoined: id => joined.push(id) });
  return { outcome, joined };
}

for (const ends of [false, true])
  test(`a message joins an equal one that another request has added to the task, when the task has ${ends ? '' : 'not '}ended`, async t => {
    const { outcome, joined } = await further(t, 'm', ends);
    assert.deepEqual([await outcome, joined], ['met', ['m']]);
  });

test('another message to a task that has ended is refused before it is appended', async t => {
  const { outcome, joined } = await further(t, 'other', true);
  await assert.rejects(outcome, { code: 'UNSUPPORTED_OPERATION', taskId: 'task' });
  assert.deepEqual(joined, []);
});
