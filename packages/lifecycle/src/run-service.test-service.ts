import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromSettings } from './config.ts';
import { runService } from './run-service.ts';
import { defineServiceConfig } from './service-settings.ts';

/** A service with one fault, for run-service.test.ts. Arguments: the environment as JSON, and the fault. */
const [, , env = '{}', mode = 'well'] = process.argv;

const config = defineServiceConfig({
  TEST_PUBLIC_URL: { type: 'url', optional: true, doc: 'A public address.' },
  TEST_KEY: { type: 'string', optional: true, secret: true, min: 8, doc: 'A secret.' },
});

await runService({
  name: 'test-service',
  env: JSON.parse(env),
  config,
  probes: 'own',
  publicAddresses: settings => [settings.TEST_PUBLIC_URL],
  start: async ({ log, signal, telemetry }) => {
    telemetry.metrics.tokens.add(7);
    signal.addEventListener('abort', () => log.info('signal aborted'));
    if (mode === 'start-fails') throw new Error('connection refused');
    if (mode === 'wrong-file') await fromSettings(() => raise('TEST_FILE: the file cannot be read (ENOENT)'));
    if (mode === 'slow-start') await sleep(700);
    if (mode === 'start-follows-signal') await sleep(60_000, undefined, { signal });
    if (mode === 'throws') setTimeout(() => raise(), 50);
    if (mode === 'rejects-without-reason') setTimeout(() => void Promise.reject(), 50);
    if (mode === 'spins') process.stdin.once('data', () => spin());
    return {
      checks: [{ name: 'log', check: async () => {} }],
      close: async () => {
        log.info('close begins');
        if (mode === 'close-fails') throw new Error('not closed');
        if (mode === 'close-waits') await once(process.stdin, 'data');
        await sleep(mode === 'close-hangs' ? 60_000 : 300);
        log.info('close ends');
      },
    };
  },
});

function raise(message = 'uncaught by purpose'): never {
  throw new Error(message);
}

/** Uses 2 s of CPU without returning to the event loop. */
function spin(): void {
  const before = process.cpuUsage();
  for (let usedMs = 0; usedMs < 2_000; ) {
    const { user, system } = process.cpuUsage(before);
    usedMs = (user + system) / 1_000;
  }
}
