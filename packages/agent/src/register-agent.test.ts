import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { createMemoryLog } from '@hopline/log/memory';
import { createLogger } from '@hopline/telemetry';
import { registerAgent } from './register-agent.ts';

test('an agent that is announced for days leaves one listener on its signal, not one for every beat', {
  timeout: 30_000,
}, async () => {
  const stop = new AbortController();
  const log = createMemoryLog();
  const beats = Promise.withResolvers<void>();
  let announced = 0;
  const announcing = registerAgent({
    log,
    name: 'mine',
    agent: { description: 'Mine.', skills: async () => [], run: async function* () {}, close: async () => {} },
    url: 'http://127.0.0.1:1/',
    skills: [],
    logger: createLogger({ service: 'test', instance: 'test', level: 'silent' }),
    signal: stop.signal,
    beatMs: 1,
    announced: () => {
      announced += 1;
      if (announced === 20) beats.resolve();
    },
  });
  await beats.promise;
  const listeners = getEventListeners(stop.signal, 'abort').length;
  stop.abort();
  await announcing;
  // The first wait for skills may still have its own.
  assert.ok(listeners <= 2, `${listeners} listeners`);
  await log.close();
});
