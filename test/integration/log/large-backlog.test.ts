import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Layouts } from '@hopline/events';
import { freePort } from '@hopline/local-cluster';
import { LogUnavailable } from '@hopline/log';
import { factRecord, inputRecord } from '@hopline/log/test-kit';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const MIB = 1024 * 1024;
const SHARDS = 256;
/** Each of these shards has one task with facts. */
const INPUTS = 180;
const FACTS = 180;
const RECORD = 'x'.repeat(480 * 1024);
/** Slower than nats-server sends, as a relay is that folds large inputs. */
const BYTES_PER_SECOND = 48 * MIB;
/** The server's `max_pending`. */
const PENDING_BYTES_MAX = 64 * MIB;

const LAYOUTS = Layouts.one(SHARDS);
const TASKS = Array.from({ length: SHARDS }, (_, shard) => {
  for (let n = 0; ; n += 1) if (LAYOUTS.shardOf(`task-${n}`) === shard) return `task-${n}`;
});

/**
 * nats-server closes a connection for which more than 64 MiB wait. All that it had sent must then be read again, so a relay that requests more would
 * never read its backlog.
 */
test('a relay that reads more slowly than nats-server sends gets a backlog of large records without being cut off', {
  timeout: 600_000,
}, async t => {
  const monitor = await freePort();
  const nats = await startNats({ config: `http: "127.0.0.1:${monitor}"` });
  t.after(() => nats.stop());
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  const writer = await openJetStreamLog({ servers: nats.url, name: 'writer', shards: SHARDS });
  t.after(() => writer.close());
  for (let n = 0; n < INPUTS; n += 1) await writer.inputs.append(TASKS[n]!, inputRecord(n + 1, RECORD), { id: `input-${n}` });
  for (let n = 0; n < FACTS; n += 1)
    await writer.facts.append(factRecord(TASKS[n]!, 1, 0, RECORD), { expected: 0, id: `${TASKS[n]}:a-1` });
  const varz = async () =>
    (await (await fetch(`http://127.0.0.1:${monitor}/varz`)).json()) as { slow_consumers: number; out_bytes: number };
  const connections = async () =>
    (
      (await (await fetch(`http://127.0.0.1:${monitor}/connz`)).json()) as {
        connections: { name: string; pending_bytes: number }[];
      }
    ).connections;
  let disconnects = 0;
  const relay = await openJetStreamLog({
    servers: proxy.url,
    name: 'relay',
    onEvent: ({ type }) => {
      if (type === 'disconnected') disconnects += 1;
    },
  });
  t.after(() => relay.close());
  proxy.limit(BYTES_PER_SECOND);
  const { out_bytes: before } = await varz();

  const stop = new AbortController();
  t.after(() => stop.abort());
  let pendingMax = 0;
  const watching = (async () => {
    while (!stop.signal.aborted) {
      for (const { name, pending_bytes } of await connections())
        if (name === 'relay') pendingMax = Math.max(pendingMax, pending_bytes);
      await sleep(20);
    }
  })();
  const ended = new AbortController();
  t.after(() => ended.abort());
  /** A relay repeats a read that fails because NATS is slow; on a loaded machine a few do. */
  const last = async (taskId: string) => {
    for (;;) {
      try {
        return await relay.facts.last(taskId);
      } catch (error) {
        if (!(error instanceof LogUnavailable)) throw error;
      }
      // Rejects once the test has ended.
      await sleep(100, undefined, { signal: ended.signal });
    }
  };
  // Shards that begin at different times have consumers of their own, and each task is read as the relay meets its first input.
  const read = async (shard: number) => {
    await sleep(15 * shard);
    for await (const { taskId } of relay.inputs.readShard(shard, 1, ended.signal)) {
      assert.equal((await last(taskId))?.record.aggregate.generation, 1);
      return;
    }
  };
  let slowest = 0;
  const lease = async () => {
    while (!stop.signal.aborted) {
      const startedMs = performance.now();
      await relay.leases.get('shard.1').catch(() => undefined);
      slowest = Math.max(slowest, performance.now() - startedMs);
      await sleep(50);
    }
  };
  const leasing = lease();
  const reading = Array.from({ length: INPUTS }, (_, shard) => read(shard));
  await Promise.all([...reading, ...TASKS.slice(0, FACTS).map(last)]);
  stop.abort();
  await Promise.all([watching, leasing]);
  const { slow_consumers: slowConsumers, out_bytes: sent } = await varz();
  const needed = (INPUTS + 2 * FACTS) * RECORD.length;
  t.diagnostic(
    `at most ${(pendingMax / MIB).toFixed(1)} MiB waited in nats-server, ${((sent - before) / needed).toFixed(2)} times the records were sent, ${disconnects} disconnects, a lease took ${slowest.toFixed(0)} ms at most`,
  );
  assert.equal(slowConsumers, 0, 'nats-server has cut off no connection');
  assert.ok(pendingMax < PENDING_BYTES_MAX / 2, `${pendingMax / MIB} MiB waited`);
});
