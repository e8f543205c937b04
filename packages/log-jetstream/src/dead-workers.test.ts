import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { type KeyValue, LogUnavailable } from '@hopline/log';
import type { Connection } from './connection.ts';
import { DeadWorkers } from './dead-workers.ts';
import type { WorkerEntry } from './worker-entry.ts';
import type { WorkerPresence } from './worker-presence.ts';

test('a worker that starts while another reads the list of workers is asked, although it is missing from the list', async t => {
  const { promise: read, resolve: answer } = Promise.withResolvers<[]>();
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<string>();
  const bucket = { under: () => read } as unknown as KeyValue<WorkerEntry>;
  const presence = { worker: randomUUID(), ask: onAsked } as unknown as WorkerPresence;
  const connection = { connected: true, onReconnect: () => () => {}, onEvent: () => {} } as unknown as Connection;
  const ended = new AbortController();
  t.after(() => ended.abort());
  const workers = new DeadWorkers(connection, { role: 'supervisor', bucket, ackWaitMs: 1_000, presence }, ended.signal);
  workers.start();
  const started = randomUUID();
  workers.onSibling(started);
  answer([]);
  assert.equal(await asked, started);
});

test('a worker reads the list of workers again in its next round if the log did not answer', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<string>();
  const { promise: failed, resolve: onFailed } = Promise.withResolvers<void>();
  const sibling = randomUUID();
  let reads = 0;
  const under = async () => {
    reads += 1;
    if (reads > 1) return [{ key: `supervisor.worker.${sibling}`, value: { queues: [] }, revision: 1 }];
    setImmediate(onFailed);
    throw new LogUnavailable('no leader');
  };
  const bucket = { under } as unknown as KeyValue<WorkerEntry>;
  const presence = { worker: randomUUID(), ask: onAsked } as unknown as WorkerPresence;
  const closed = new AbortController().signal;
  const connection = { connected: true, closed, onReconnect: () => () => {}, onEvent: () => {} } as unknown as Connection;
  const ended = new AbortController();
  t.after(() => ended.abort());
  new DeadWorkers(connection, { role: 'supervisor', bucket, ackWaitMs: 1_000, presence }, ended.signal).start();
  await failed;
  t.mock.timers.tick(60_000);
  await new Promise(resolve => setImmediate(resolve));
  assert.equal(reads, 2);
  assert.equal(await asked, sibling);
});
