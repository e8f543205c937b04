import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AgentRegistration, LiveAgents, type RegisteredAgent } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { until } from '../../../test/kit/until.ts';
import { atLeastOneAgent } from './at-least-one-agent.ts';

const NEVER = new AbortController().signal;
const AGENT = { name: 'guide' } as RegisteredAgent;

const entryOf = (name: string): AgentRegistration => ({
  name,
  description: name,
  url: 'http://localhost',
  skills: [],
  heartbeat: 1,
});

test('a task of a supervisor that has just started waits for an agent', async () => {
  let agents: RegisteredAgent[] = [];
  setTimeout(() => {
    agents = [AGENT];
  }, 300);
  const registry = { seenWithin: () => agents, msSinceSeen: () => 59_999 };
  assert.deepEqual(await atLeastOneAgent(registry, { waitMs: 60_000, firstMs: 0 }, NEVER), [AGENT]);
});

test('a task waits only firstMs if no agent has been seen for waitMs', async () => {
  const registry = { seenWithin: () => [], msSinceSeen: () => 60_000 };
  assert.deepEqual(await atLeastOneAgent(registry, { waitMs: 60_000, firstMs: 100 }, NEVER), []);
});

test('without an agent the wait ends after waitMs, and at an abort at once', async () => {
  const registry = { seenWithin: () => [], msSinceSeen: () => 0 };
  const startedAt = performance.now();
  assert.deepEqual(await atLeastOneAgent(registry, { waitMs: 250 }, NEVER), []);
  assert.ok(performance.now() - startedAt >= 250);
  assert.deepEqual(await atLeastOneAgent(registry, { waitMs: 600_000 }, AbortSignal.abort()), []);
});

test('an agent that stopped gracefully, as in a restart, still counts until its last heartbeat is waitMs old', async () => {
  const clock = { nowMs: 0 };
  const agents = new LiveAgents(() => clock.nowMs);
  const stopped = new AbortController();
  const log = createMemoryLog();
  await agents.follow(log.agents, stopped.signal, error => assert.fail(String(error)));
  await log.agents.put('guide.1', entryOf('guide'));
  await log.agents.put('painter.1', entryOf('painter'));
  await until(() => agents.list().length === 2);
  await log.agents.delete('guide.1');
  await until(() => !agents.isLive('guide'));
  clock.nowMs = 5_000;
  const seen = async (waitMs: number) =>
    (await atLeastOneAgent(agents, { waitMs }, NEVER)).map(({ name, isLive }) => [name, isLive]);
  assert.deepEqual(await seen(5_001), [
    ['guide', false],
    ['painter', true],
  ]);
  assert.deepEqual(await seen(5_000), [['painter', true]]);
  stopped.abort();
});
