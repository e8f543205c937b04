import assert from 'node:assert/strict';
import test from 'node:test';
import { createHealth, READY_CHECK_MS_MAX } from './health.ts';

class LogUnavailable extends Error {
  override readonly name = 'LogUnavailable';
}

test('a process is ready after its start while every check passes, and never after a drain', async () => {
  const health = createHealth();
  assert.deepEqual(await health.readiness(), {
    ready: false,
    draining: false,
    notReady: [{ check: 'start', reason: 'starting' }],
    degraded: [],
  });
  health.started([{ name: 'log', check: async () => {} }]);
  assert.deepEqual(await health.readiness(), { ready: true, draining: false, notReady: [], degraded: [] });
  health.drain();
  assert.deepEqual(await health.readiness(), { ready: false, draining: true, notReady: [], degraded: [] });
});

test('a failing check is reported with the name of its error, without the message', async () => {
  const health = createHealth();
  health.started([
    { name: 'log', check: () => Promise.reject(new LogUnavailable('nats://u:PLANTED@h')) },
    {
      name: 'agent',
      check: () => {
        throw new Error('PLANTED');
      },
    },
    { name: 'appends', check: async () => {} },
  ]);
  const readiness = await health.readiness();
  assert.deepEqual(readiness.notReady, [
    { check: 'log', reason: 'LogUnavailable' },
    { check: 'agent', reason: 'Error' },
  ]);
  assert.equal(readiness.ready, false);
  const results = [
    ['log', true],
    ['agent', true],
    ['appends', false],
  ];
  assert.deepEqual(health.results(), results);
  health.drain();
  await health.readiness();
  assert.deepEqual(health.results(), results, 'a drain runs no check');
});

test('a failing optional check leaves the process ready, and is reported with the code of its system error', async () => {
  const health = createHealth();
  const refused = Object.assign(new Error('connect ECONNREFUSED PLANTED'), { code: 'ECONNREFUSED' });
  health.started([
    { name: 'log', check: async () => {} },
    { name: 'agent', optional: true, check: () => Promise.reject(new Error('PLANTED', { cause: refused })) },
  ]);
  const degraded = [{ check: 'agent', reason: 'ECONNREFUSED' }];
  assert.deepEqual(await health.readiness(), { ready: true, draining: false, notReady: [], degraded });
});

test('a drain that begins during the checks makes the result not ready', async () => {
  const health = createHealth();
  const { promise, resolve } = Promise.withResolvers<void>();
  health.started([{ name: 'log', check: () => promise }]);
  const asked = health.readiness();
  health.drain();
  resolve();
  assert.equal((await asked).ready, false);
});

test('a hanging check times out after READY_CHECK_MS_MAX, is aborted, and is shared by all probes', async () => {
  const health = createHealth();
  let running = 0;
  let aborted = false;
  health.started([
    {
      name: 'log',
      check: signal => {
        running += 1;
        signal.addEventListener('abort', () => {
          aborted = true;
        });
        return new Promise(() => {});
      },
    },
  ]);
  const started = performance.now();
  const all = await Promise.all(Array.from({ length: 50 }, () => health.readiness()));
  const elapsedMs = performance.now() - started;
  assert.ok(elapsedMs > READY_CHECK_MS_MAX - 50 && elapsedMs < READY_CHECK_MS_MAX + 5000, `${elapsedMs} ms`);
  for (const readiness of all) assert.deepEqual(readiness.notReady, [{ check: 'log', reason: 'timeout' }]);
  assert.equal(running, 1);
  assert.equal(aborted, true);
});

test('a failed check runs again for the next probe', async () => {
  const health = createHealth();
  let up = false;
  health.started([{ name: 'log', check: async () => (up ? undefined : Promise.reject(new LogUnavailable())) }]);
  assert.equal((await health.readiness()).ready, false);
  up = true;
  assert.equal((await health.readiness()).ready, true);
});
