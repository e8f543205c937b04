import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { AgentInput } from '@hopline/events';
import type { InputWriter } from '@hopline/log';
import { untilTick } from '../../../test/kit/until.ts';
import { AGENT_GONE, abandonGoneAgents } from './gone-agents.ts';
import type { TurnView } from './turn-view.ts';

const CHECK_MS = 1_000;
const GONE_MS = 2 * CHECK_MS;
const SUSPENDED_MS = 60_000;

/** One open call to the agent `writer`, with a clock that the test controls. The checks run at their real interval. */
function watched(t: TestContext) {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const inputs: AgentInput[] = [];
  const stop = new AbortController();
  const state = { isLive: true, isLogAway: false };
  let checks = 0;
  const view = { calls: ['call-1-1'], ended: () => undefined, agentOf: () => 'writer', needsCredentials: () => false };
  const watching = abandonGoneAgents({
    view: view as unknown as TurnView,
    writer: { add: (input: AgentInput) => void inputs.push(input) } as unknown as InputWriter,
    isLive: () => {
      checks += 1;
      return state.isLive;
    },
    signal: stop.signal,
    log: { check: async () => assert.equal(state.isLogAway, false) },
    agentGoneMs: GONE_MS,
  });
  t.after(async () => {
    stop.abort();
    await watching;
  });
  /** Runs the next check. A time longer than its interval means that the process was suspended. */
  const check = async (afterMs = CHECK_MS) => {
    const before = checks;
    nowMs += afterMs;
    await untilTick(() => checks !== before || inputs.length > 0);
    await setImmediate();
  };
  return { inputs, state, check };
}

test('an agent that is absent from the registry during the whole time is abandoned', async t => {
  const { inputs, state, check } = watched(t);
  await check();
  state.isLive = false;
  await check();
  assert.deepEqual(inputs, []);
  await check();
  assert.deepEqual(inputs, [
    { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_FAILED', reason: AGENT_GONE, retryable: true },
  ]);
});

test('after a suspension of its process, a supervisor gives agents the whole time to send a heartbeat', async t => {
  const { inputs, state, check } = watched(t);
  await check();
  state.isLive = false;
  await check(SUSPENDED_MS);
  await check();
  state.isLive = true;
  await check();
  assert.deepEqual(inputs, []);
});

test('time in which the log is unavailable does not count, because no heartbeat can arrive then', async t => {
  const { inputs, state, check } = watched(t);
  await check();
  Object.assign(state, { isLive: false, isLogAway: true });
  await check();
  await check();
  assert.deepEqual(inputs, []);
});
