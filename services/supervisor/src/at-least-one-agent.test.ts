import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AGENT_SILENCE_MS_MAX, type AgentRegistration, LiveAgents, type RegisteredAgent } from '@hopline/log';
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

test('a task waits for an agent that was there a moment ago, and uses it when it returns', async () => {
  let agents: RegisteredAgent[] = [];
  setTimeout(() => {
    agents = [AGENT];
  }, 300);
  const registry = { list: () => agents, msSinceSeen: () => 59_999, msSinceSeenOf: () => 59_999 };
  assert.deepEqual(await atLeastOneAgent(registry, { waitMs: 60_000, firstMs: 0 }, NEVER), [AGENT]);
});

test('a task waits only firstMs if no agent has been seen for waitMs', async () => {
  const registry = { list: () => [], msSinceSeen: () => 60_000, msSinceSeenOf: () => 60_000 };
  assert.deepEqual(await atLeastOneAgent(registry, { waitMs: 60_000, firstMs: 100 }, NEVER), []);
});

test('an agent that stays away ends the wait after waitMs, an abort at once', async () => {
  const registry = { list: () => [], msSinceSeen: () => 0, msSinceSeenOf: () => 0 };
  const startedAt = performance.now();
  assert.deepEqual(await atLeastOneAgent(registry, { waitMs: 250 }, NEVER), []);
  assert.ok(performance.now() - startedAt >= 250);
  assert.deepEqual(await atLeastOneAgent(registry, { waitMs: 600_000 }, AbortSignal.abort()), []);
});

/** A registry with two agents, followed until `stopped` aborts. */
async function guideAndPainter() {
  const clock = { nowMs: 0 };
  const agents = new LiveAgents(() => clock.nowMs);
  const stopped = new AbortController();
  const log = createMemoryLog();
  await agents.follow(log.agents, stopped.signal, error => assert.fail(String(error)));
  await log.agents.put('guide.1', entryOf('guide'));
  await log.agents.put('painter.1', entryOf('painter'));
  await until(() => agents.list().length === 2);
  return { agents, log, clock, stopped };
}

test('a task waits for the agent that its client names, although others are back after an outage of the registry', async () => {
  const { agents, log, clock, stopped } = await guideAndPainter();
  clock.nowMs = AGENT_SILENCE_MS_MAX + 1;
  assert.deepEqual(agents.list(), []);
  await log.agents.put('guide.1', entryOf('guide'));
  await until(() => agents.isLive('guide'));
  const names = async (waitMs: number, named?: string) =>
    (await atLeastOneAgent(agents, { waitMs }, NEVER, named)).map(({ name }) => name);
  assert.deepEqual(await names(60_000), ['guide']);
  assert.deepEqual(await names(60_000, 'guide'), ['guide']);
  assert.deepEqual(await names(60_000, 'unknown'), ['guide']);
  assert.deepEqual(
    await names(AGENT_SILENCE_MS_MAX, 'painter'),
    ['guide'],
    'an agent that is silent for longer is not waited for',
  );
  const waiting = names(60_000, 'painter');
  await log.agents.put('painter.1', entryOf('painter'));
  assert.deepEqual(await waiting, ['guide', 'painter']);
  stopped.abort();
});

test('a task waits for the agent that its client names although the agent stopped in order, as in a restart or a reload', async () => {
  const { agents, log, clock, stopped } = await guideAndPainter();
  await log.agents.delete('painter.1');
  await until(() => !agents.isLive('painter'));
  const names = async (waitMs: number, named: string) =>
    (await atLeastOneAgent(agents, { waitMs }, NEVER, named)).map(({ name }) => name);
  const waiting = names(60_000, 'painter');
  await log.agents.put('painter.2', entryOf('painter'));
  assert.deepEqual(await waiting, ['guide', 'painter']);
  await log.agents.delete('painter.2');
  await until(() => !agents.isLive('painter'));
  clock.nowMs = AGENT_SILENCE_MS_MAX;
  assert.deepEqual(await names(AGENT_SILENCE_MS_MAX, 'painter'), ['guide'], 'an agent that was removed is not waited for');
  stopped.abort();
});
