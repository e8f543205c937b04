import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RegisteredAgent } from '@hopline/log';
import { atLeastOneAgent } from './at-least-one-agent.ts';

const NEVER = new AbortController().signal;
const AGENT = { name: 'guide' } as RegisteredAgent;

test('a task waits for an agent that was there a moment ago, and uses it when it returns', async () => {
  let agents: RegisteredAgent[] = [];
  setTimeout(() => {
    agents = [AGENT];
  }, 300);
  const registry = { list: () => agents, msSinceSeen: () => 59_999 };
  assert.deepEqual(await atLeastOneAgent(registry, { waitMs: 60_000, firstMs: 0 }, NEVER), [AGENT]);
});

test('a task waits only firstMs if no agent has been seen for waitMs', async () => {
  const registry = { list: () => [], msSinceSeen: () => 60_000 };
  assert.deepEqual(await atLeastOneAgent(registry, { waitMs: 60_000, firstMs: 100 }, NEVER), []);
});

test('an agent that stays away ends the wait after waitMs, an abort at once', async () => {
  const registry = { list: () => [], msSinceSeen: () => 0 };
  const startedAt = performance.now();
  assert.deepEqual(await atLeastOneAgent(registry, { waitMs: 250 }, NEVER), []);
  assert.ok(performance.now() - startedAt >= 250);
  assert.deepEqual(await atLeastOneAgent(registry, { waitMs: 600_000 }, AbortSignal.abort()), []);
});
