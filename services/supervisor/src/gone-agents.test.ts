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

/** One open call to the agent `writer`, with a clock that the test controls. The checks run at the real interval. */
function watched(t: TestContext) {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const inputs: AgentInput[] = [];
  const stop = new AbortController();
  const state = { isLive: true, isLogAway: false };
  let stored = Promise.resolve();
  let waits = 0;
  const lines: unknown[] = [];
  let checks = 0;
  const view = { calls: ['call-1-1'], ended: () => undefined, agentOf: () => 'writer', needsCredentials: () => false };
  const watching = abandonGoneAgents({
    view: view as unknown as TurnView,
    writer: {
      add: (input: AgentInput) => void (input.kind === 'ended' && inputs.push(input)),
      flush: () => {
        waits += 1;
        return stored;
      },
    } as unknown as InputWriter,
    isLive: () => {
      checks += 1;
      return state.isLive;
    },
    signal: stop.signal,
    logger: { warn: (...line: unknown[]) => void lines.push(line) },
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
  /** The log stores nothing until the returned function runs, `afterMs` later. */
  const fillDisk = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    stored = promise;
    const before = waits;
    return async (afterMs: number) => {
      await untilTick(() => waits > before);
      nowMs += afterMs;
      stored = Promise.resolve();
      resolve();
      await setImmediate();
    };
  };
  return { inputs, lines, state, check, fillDisk };
}

test('an agent is abandoned if it is absent from the registry for the whole time', async t => {
  const { inputs, lines, state, check } = watched(t);
  await check();
  state.isLive = false;
  await check();
  assert.deepEqual(inputs, []);
  await check();
  assert.deepEqual(inputs, [
    { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_FAILED', reason: AGENT_GONE, retryable: true },
  ]);
  assert.deepEqual(lines, [[{ agent: 'writer', call_id: 'call-1-1', reason: AGENT_GONE }, 'call abandoned']]);
});

test('after its process was suspended, a supervisor gives agents the whole time again to send a heartbeat', async t => {
  const { inputs, state, check } = watched(t);
  await check();
  state.isLive = false;
  await check(SUSPENDED_MS);
  await check();
  state.isLive = true;
  await check();
  assert.deepEqual(inputs, []);
});

test('time while the log is unavailable does not count, because no heartbeat can arrive then', async t => {
  const { inputs, state, check } = watched(t);
  await check();
  Object.assign(state, { isLive: false, isLogAway: true });
  await check();
  await check();
  assert.deepEqual(inputs, []);
});

test('time while the log answers but stores nothing does not count, from the first check to the end', async t => {
  const { inputs, state, check, fillDisk } = watched(t);
  await check();
  let makeRoom = fillDisk();
  state.isLive = false;
  await check();
  await makeRoom(SUSPENDED_MS);
  await check();
  makeRoom = fillDisk();
  await check();
  await makeRoom(SUSPENDED_MS);
  assert.deepEqual(inputs, []);
  await check();
  assert.deepEqual(inputs, []);
  await check();
  assert.equal(inputs.length, 1, 'an agent that stays away is abandoned');
});
