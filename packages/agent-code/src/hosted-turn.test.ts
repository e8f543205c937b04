import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HostedTurn, SPANS_MAX } from './hosted-turn.ts';

test('the first spans of a turn are exported, up to their bound', () => {
  const turn = new HostedTurn(() => {});
  const exported = Array.from({ length: SPANS_MAX + 1 }, () => turn.spanEnded());
  assert.deepEqual(exported.slice(-2), [true, false]);
});
