import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InputWriter } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startNats } from '../../support/nats/nats-server.ts';

/** The pings detect it within 15 s; with the client's default interval it took a minute. */
const REPLACED_MS_MAX = 40_000;

test('a connection whose path is gone without being closed is replaced, and waiting publishes are stored', {
  timeout: 120_000,
}, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  const log = await openJetStreamLog({ servers: proxy.url, name: 'stranded' });
  t.after(() => log.close());
  const writer = new InputWriter(log.inputs, { taskId: 'task', producer: { id: 'agent', agent: 'a', turn: 1, attempt: 1 } });
  proxy.strand();
  const startedAt = performance.now();
  writer.token('answer', 'text');
  await writer.flush();
  const ms = Math.round(performance.now() - startedAt);
  t.diagnostic(`stored after ${ms} ms`);
  assert.ok(ms < REPLACED_MS_MAX, `${ms} ms`);
});
