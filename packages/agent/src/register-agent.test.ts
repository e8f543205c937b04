import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { createMemoryLog } from '@hopline/log/memory';
import { createLogger } from '@hopline/telemetry';
import { registerAgent } from './register-agent.ts';

test('a registered agent has one listener on its signal, not one for each heartbeat, and its entry has the mark of a default agent', {
  timeout: 30_000,
}, async () => {
  const stop = new AbortController();
  const log = createMemoryLog();
  const heartbeats = Promise.withResolvers<void>();
  let count = 0;
  const registered = registerAgent({
    log,
    name: 'mine',
    agent: { description: 'Mine.', skills: async () => [], run: async function* () {}, close: async () => {} },
    url: 'http://127.0.0.1:1/',
    skills: [],
    isDefault: true,
    logger: createLogger({ service: 'test', instance: 'test', level: 'silent' }),
    signal: stop.signal,
    heartbeatMs: 1,
    onRegistered: () => {
      count += 1;
      if (count === 20) heartbeats.resolve();
    },
  });
  await heartbeats.promise;
  assert.equal((await log.agents.get('mine'))?.value.default, true);
  const listeners = getEventListeners(stop.signal, 'abort').length;
  stop.abort();
  await registered;
  // The first wait for skills may still have one of its own.
  assert.ok(listeners <= 2, `${listeners} listeners`);
  await log.close();
});
