import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentRecord, TextInput } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import { PendingText } from './pending-text.ts';

test('a lane holds any number of tokens, because a canceled task may have no chunk of a whole answer', () => {
  const from = { id: 'c', agent: 'a', turn: 1, attempt: 1 };
  const input: TextInput = { kind: 'text', lane: 'l', tokens: new Array<string>(300_000).fill('x') };
  const record: AgentRecord = { v: 1, at: 1, from, n: 1, inputs: [input] };
  const stored: StoredInput = { seq: 1, storedAt: 1, taskId: 't', writer: 'agent.a', bytes: 0, record };
  const text = new PendingText(from, 'l');
  text.push(record, input, 1, 0, stored);
  assert.equal(text.takeAll(true)?.text.length, 300_000);
});
