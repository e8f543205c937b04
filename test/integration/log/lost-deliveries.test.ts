import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Work } from '@hopline/events';
import type { Job } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const ATTEMPTS_MAX = 2;
const LOST = 3;

test('deliveries that reach no worker use up no attempt', { timeout: 60_000 }, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  const log = await openJetStreamLog({ servers: proxy.url, name: 'worker', attemptsMax: ATTEMPTS_MAX, ackWaitMs: 500 });
  t.after(() => log.close());
  let lost = 0;
  let deliveries = 0;
  proxy.lose = ({ subject }) => {
    if (!subject.startsWith('a2a.work.')) return false;
    deliveries += 1;
    // The first one reaches its worker, which fails.
    if (deliveries === 1 || lost === LOST) return false;
    lost += 1;
    return true;
  };
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'x' }] };
  const work: Work = { v: 1, taskId: 'task', contextId: 'c', turn: 1, profile: 'caipe', message };
  await log.work.request('agent.mine', work, { id: 'task' });
  const stop = new AbortController();
  const jobs: Pick<Job, 'attempt' | 'requeues' | 'exhausted'>[] = [];
  await log.work.take('agent.mine', { slots: 8, signal: stop.signal }, async ({ attempt, requeues, exhausted }) => {
    jobs.push({ attempt, requeues, exhausted });
    if (jobs.length < 3) throw new Error('failed');
    stop.abort();
  });
  assert.deepEqual(jobs, [
    { attempt: 1, requeues: 0, exhausted: false },
    { attempt: 2 + LOST, requeues: LOST, exhausted: false },
    { attempt: 3 + LOST, requeues: LOST, exhausted: true },
  ]);
});
