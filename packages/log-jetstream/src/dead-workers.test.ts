import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { KeyValue } from '@hopline/log';
import type { Connection } from './connection.ts';
import { DeadWorkers } from './dead-workers.ts';
import type { WorkerEntry } from './worker-entry.ts';
import type { WorkerPresence } from './worker-presence.ts';

test('a worker that starts while another one reads the list of workers is asked, although the answer lacks it', async t => {
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
