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
