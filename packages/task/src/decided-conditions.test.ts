import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InputRecord } from '@hopline/events';
import { withDecidedConditions } from './decided-conditions.ts';
import { Scenario } from './scenario.test-kit.ts';

const stored = (seq: number, messageId: string, ifGeneration?: number) => {
  const message = { messageId, role: 'ROLE_USER' as const, parts: [{ text: 'x' }] };
  const condition = ifGeneration === undefined ? {} : { ifGeneration };
  const input = { kind: 'message', message, contextId: 'c', role: 'supervisor', profile: 'caipe', ...condition } as const;
  return { seq, record: { v: 1, at: 0, from: 'client', input } as InputRecord };
};

test('the outcome of a condition takes its place: accepted messages have none, and the others one that no task meets', () => {
  const { facts } = new Scenario().message('hello', 'm1').message('again', 'm2');
  const inputs = [stored(1, 'm1'), stored(2, 'm2', 7), stored(3, 'm2', 1), stored(4, 'm3', 1)];
  assert.deepEqual(withDecidedConditions(inputs, facts), [
    stored(1, 'm1'),
    stored(2, 'm2', 0),
    stored(3, 'm2'),
    stored(4, 'm3', 0),
  ]);
  const unconditional = inputs.slice(0, 1);
  assert.equal(withDecidedConditions(unconditional, facts), unconditional);
});
