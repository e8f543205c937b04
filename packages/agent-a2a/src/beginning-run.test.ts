import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { BeginningRun } from './beginning-run.ts';

test('a stopped turn leaves its request open until the agent has named the task', () => {
  const turn = new AbortController();
  using run = new BeginningRun(turn.signal);
  turn.abort('ended');
  assert.equal(run.signal.aborted, false);
  run.named();
  assert.equal(run.signal.reason, 'ended');
});

test('once the task is named, the request stops with its turn', () => {
  const turn = new AbortController();
  using run = new BeginningRun(turn.signal);
  run.named();
  assert.equal(run.signal.aborted, false);
  turn.abort('ended');
  assert.equal(run.signal.reason, 'ended');
});

test('a request whose agent names no task stops at its limit', { timeout: 120_000 }, async () => {
  const turn = new AbortController();
  using run = new BeginningRun(turn.signal, 1);
  const stopped = once(run.signal, 'abort');
  turn.abort('ended');
  await stopped;
  assert.equal(run.signal.reason, 'ended');
});

test('a turn that was already stopped sends no request', () => {
  using run = new BeginningRun(AbortSignal.abort('ended'));
  assert.equal(run.signal.aborted, true);
});
