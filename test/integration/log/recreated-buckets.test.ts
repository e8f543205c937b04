import assert from 'node:assert/strict';
import { test } from 'node:test';
import { followBucket, type KeyValue } from '@hopline/log';
import { LEASE_HEARTBEAT_MS, LEASE_MS, ShardLeases } from '@hopline/log/shard-leases';
import { BUCKETS, LogNames, openJetStreamLog } from '@hopline/log-jetstream';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNats } from '../../support/nats/nats-server.ts';

/** Entries of the lost bucket: so many that the revisions of the new bucket stay below theirs. */
const ENTRIES = 40;

async function createAgain(jsm: JetStreamManager, bucket: string): Promise<void> {
  const stream = `KV_${new LogNames().bucket(bucket)}`;
  const { config } = await jsm.streams.info(stream);
  await jsm.streams.delete(stream);
  await jsm.streams.add(config);
}

test('every open view sees a bucket that was lost and created again', { timeout: 180_000 }, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const log = await openJetStreamLog({ servers: nats.url, name: 'views' });
  t.after(() => log.close());
  const nc = await connect({ servers: nats.url });
  t.after(() => nc.close());
  const jsm = await jetstreamManager(nc);
  const stop = new AbortController();
  t.after(() => stop.abort());
  const watched = ['leases', 'tasks', 'agents', 'messageIds', 'contexts', 'pushConfigs', 'pushProgress'] as const;
  await Promise.all(
    watched.map(async name => {
      const bucket = log[name] as unknown as KeyValue<object>;
      // Entries in the forms that each bucket accepts.
      const value = {
        taskId: 't',
        fingerprint: 'f',
        tasks: [],
        contextId: 'c',
        role: 'supervisor',
        state: 'TASK_STATE_WORKING',
        startSeq: 1,
        generation: 1,
        at: 1,
      };
      const more = { id: 'i', url: 'http://x', dialect: '1.0', after: 0, config: 1, seq: 1, failures: 0 };
      const view = new Set<string>();
      let fresh = new Set<string>();
      await followBucket(bucket, stop.signal, {
        begin: () => (fresh = new Set()),
        change: ({ key, value }) => {
          for (const keys of [view, fresh]) value === undefined ? keys.delete(key) : keys.add(key);
        },
        ready: () => {
          for (const key of view) if (!fresh.has(key)) view.delete(key);
        },
        lost: () => {},
      });
      for (let n = 0; n < ENTRIES; n += 1) await bucket.put('old', { ...value, ...more });
      await until(() => view.has('old'), `${name} shows an entry`);
      await createAgain(jsm, BUCKETS[name]);
      await bucket.put('new', { ...value, ...more });
      await until(() => view.has('new') && !view.has('old'), `${name} shows the new bucket`);
    }),
  );
});

test('shards keep their owner when the bucket of leases is lost and created again', { timeout: 180_000 }, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const log = await openJetStreamLog({ servers: nats.url, name: 'leases' });
  t.after(() => log.close());
  const nc = await connect({ servers: nats.url });
  t.after(() => nc.close());
  const jsm = await jetstreamManager(nc);
  const running = new Set<number>();
  const leases = new ShardLeases({
    store: log.leases,
    presence: log.presence,
    keys: { member: 'relay', shard: 'shard' },
    shards: () => 4,
    instance: 'a',
    heartbeatMs: LEASE_HEARTBEAT_MS,
    leaseMs: LEASE_MS,
    now: () => performance.now(),
    startShard: shard => void running.add(shard),
    stopShard: async shard => {
      running.delete(shard);
      return { checkpoint: 0 };
    },
    progressOf: () => ({ checkpoint: 0 }),
    onError: () => {},
  });
  await leases.start();
  await until(() => running.size === 4, 'all shards run');
  for (let n = 0; n < ENTRIES; n += 1) await log.leases.put('relay.gone', { owner: 'gone', heartbeat: n });
  await createAgain(jsm, BUCKETS.leases);
  const owners = async () => {
    const found = await Promise.all([0, 1, 2, 3].map(shard => log.leases.get(`shard.${shard}`)));
    return found.map(entry => entry?.value.owner);
  };
  // A shard that fails before the leases are written again finds no lease.
  await leases.restart(3);
  await until(async () => (await owners()).every(owner => owner === 'a'), 'every lease is written again');
  await until(() => running.size === 4, 'every shard runs');
  assert.equal(leases.held.size, 4);
  await leases.stop();
});
