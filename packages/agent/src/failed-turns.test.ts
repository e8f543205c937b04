import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAILED_TURNS_MIN, FAILING_MS_MAX, FailedTurns } from './failed-turns.ts';
import { COMPLETED, failedEnd } from './turn-end.ts';

const ended = { ...COMPLETED, lastN: 1 };
const failed = (cause?: string) => ({ ...failedEnd('it failed', true, cause), lastN: 1 });

function turns() {
  const clock = { now: 0 };
  const recent = new FailedTurns(() => clock.now);
  const fail = (times: number, cause?: string) => {
    for (let i = 0; i < times; i += 1) recent.add(failed(cause));
  };
  return { clock, recent, fail };
}

test('an agent counts as failing, with the newest cause, while all its recent turns have failed', () => {
  const { recent, fail } = turns();
  fail(FAILED_TURNS_MIN - 1, 'http_500');
  assert.equal(recent.failing(), undefined);
  fail(1, 'http_503');
  assert.equal(recent.failing(), 'http_503');
  recent.add({ unneeded: 'ended' });
  assert.equal(recent.failing(), 'http_503');
  recent.add(ended);
  assert.equal(recent.failing(), undefined);
  fail(FAILED_TURNS_MIN);
  assert.equal(recent.failing(), 'agent_failed');
});

test('an agent that gets no more questions soon stops being shown as failing', () => {
  const { clock, recent, fail } = turns();
  fail(FAILED_TURNS_MIN);
  clock.now = FAILING_MS_MAX - 1;
  assert.equal(recent.failing(), 'agent_failed');
  clock.now = FAILING_MS_MAX;
  assert.equal(recent.failing(), undefined);
});
