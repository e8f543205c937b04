import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StreamOutcome } from './stream-outcome.ts';

const ids = { taskId: 't-1', contextId: 'c-1' };

test('a conversation continues with the agent that the user named, unless the server asks for another one', () => {
  for (const [metadata, expected] of [
    [undefined, { contextId: 'c-1', agent: 'files' }],
    [{ choose: { agents: ['guide'] } }, { contextId: 'c-1' }],
  ] as const) {
    const outcome = new StreamOutcome();
    const status = { state: 'TASK_STATE_FAILED' as const };
    outcome.record({ cursor: '3.2', event: { statusUpdate: { ...ids, status, ...(metadata && { metadata }) } } });
    assert.deepEqual(outcome.conversation('files'), expected);
  }
});

test('if an agent threw, clients do not get the reason; the reasons of other failures are shown', () => {
  const failedWith = (text: string) => {
    const outcome = new StreamOutcome();
    const message = { role: 'ROLE_AGENT' as const, messageId: 'm', parts: [{ text }] };
    outcome.record({ cursor: '3.2', event: { statusUpdate: { ...ids, status: { state: 'TASK_STATE_FAILED', message } } } });
    return outcome.hasHiddenReason;
  };
  assert.equal(failedWith('greeter: the agent failed'), true);
  assert.equal(failedWith('the folder is full'), false);
});
