import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { defineConfig } from '@hopline/lifecycle';
import { BUCKETS, backUpFromSettings, LOG_SETTINGS, restoreFromSettings } from '@hopline/log-jetstream';
import { type ConsumerInfo, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { collect } from '../../kit/collect.ts';
import { until } from '../../kit/until.ts';
import { createStreams, startNats, startNatsCluster } from '../../support/nats/nats-server.ts';

const settingsOf = (url: string, replicas = 1) =>
  defineConfig(LOG_SETTINGS).load({ NATS_URL: url, HOPLINE_REPLICAS: String(replicas) });

test('a failed restore removes what it has restored, and no stream that another process has created meanwhile', {
  timeout: 120_000,
}, async t => {
  const home = mkdtempSync(join(tmpdir(), 'hopline-restore-'));
  t.after(() => rmSync(home, { recursive: true }));
  const folder = join(home, 'backup');
  const source = await startNats();
  t.after(() => source.stop());
  await createStreams(source.url);
  await backUpFromSettings(settingsOf(source.url), { folder, onStream: () => {} });

  const target = await startNats();
  t.after(() => target.stop());
  const nc = await connect({ servers: target.url });
  t.after(() => nc.close());
  const jsm = await jetstreamManager(nc);
  // This stream is restored last, so that another process can have created it by then.
  const name = `KV_${BUCKETS.leases}`;
  let created: Promise<unknown> | undefined;
  const onStream = () => {
    created ??= jsm.streams.add({ name, subjects: [`$KV.${BUCKETS.leases}.>`] });
  };
  await assert.rejects(restoreFromSettings(settingsOf(target.url), { folder, onStream }), /stream name already in use/);
  await created;
  const left = await collect(jsm.streams.names());
  assert.deepEqual(left, [name]);
});

test('every shard of a restored log leaps over the generations of the time that it has lost', { timeout: 120_000 }, async t => {
  const home = mkdtempSync(join(tmpdir(), 'hopline-restore-'));
  t.after(() => rmSync(home, { recursive: true }));
  const folder = join(home, 'backup');
  const [source, target] = await Promise.all([startNats(), startNats()]);
  t.after(() => Promise.all([source.stop(), target.stop()]));
  await createStreams(source.url);
  const nc = await connect({ servers: source.url });
  t.after(() => nc.close());
  const leaseOf = (shard: number) => `$KV.${BUCKETS.leases}.shard.${shard}`;
  // Released, so that the next owner would not ask for the leadership of the stream of facts.
  const released = { owner: '', checkpoint: 1, leadership: 'n1' };
  await jetstream(nc).publish(leaseOf(3), JSON.stringify(released));
  await jetstream(nc).publish('a2a.raw.03.t.client', '{}');
  await jetstream(nc).publish('a2a.raw.05.t.client', '{}');
  await backUpFromSettings(settingsOf(source.url), { folder, onStream: () => {} });
  await restoreFromSettings(settingsOf(target.url), { folder, onStream: () => {} });
  const restored = await connect({ servers: target.url });
  t.after(() => restored.close());
  const { streams } = await jetstreamManager(restored);
  const stored = async (shard: number) =>
    (await streams.getMessage(`KV_${BUCKETS.leases}`, { last_by_subj: leaseOf(shard) }))?.json<unknown>();
  assert.deepEqual(await stored(3), { ...released, leapTo: 2 });
  assert.deepEqual(await stored(0), { owner: '', leapTo: 2 }, 'a shard without a lease');
});

for (const replicas of [1, 3])
  test(`items of a restored work queue are counted as delivered before workers that wait for its streams take them: ${replicas} replicas`, {
    timeout: 240_000,
  }, async t => {
    const home = mkdtempSync(join(tmpdir(), 'hopline-restore-'));
    t.after(() => rmSync(home, { recursive: true }));
    const folder = join(home, 'backup');
    const source = await startNats();
    t.after(() => source.stop());
    await createStreams(source.url);
    const nc = await connect({ servers: source.url });
    t.after(() => nc.close());
    const { consumers } = await jetstreamManager(nc);
    await consumers.add('A2A_WORK', {
      durable_name: 'supervisor',
      filter_subject: 'a2a.work.supervisor.*',
      ack_policy: 'explicit',
    });
    await jetstream(nc).publish('a2a.work.supervisor.t', '{}');
    await backUpFromSettings(settingsOf(source.url), { folder, onStream: () => {} });
    const target = replicas === 1 ? await startNats() : await startCluster(replicas);
    t.after(() => target.stop());
    const restored = await connect({ servers: target.url.split(',') });
    t.after(() => restored.close());
    const jsm = await jetstreamManager(restored, { checkAPI: false });
    // Under load, servers elect a new leader of the consumer now and then, and the consumer does not answer during that time.
    const infoNow = () => jsm.consumers.info('A2A_WORK', 'supervisor').catch(() => undefined);
    let waiting: Promise<ConsumerInfo> | undefined;
    const onStream = ({ name }: { name: string }) => {
      if (name === 'A2A_WORK') waiting = until(infoNow);
    };
    await restoreFromSettings(settingsOf(target.url, replicas), { folder, onStream });
    assert.equal((await waiting)?.num_pending, 0);
  });

async function startCluster(size: number): Promise<{ url: string; stop: () => Promise<void> }> {
  const cluster = await startNatsCluster(Array.from({ length: size }, (_, n) => `n${n}`));
  await until(() => cluster.metaLeader(), 'the servers have a leader', 60_000);
  return { url: [...cluster.servers.values()].map(({ url }) => url).join(), stop: () => cluster.stop() };
}

test('a backup during which a layout was added is restored, although it lacks the streams of that layout', {
  timeout: 120_000,
}, async t => {
  const home = mkdtempSync(join(tmpdir(), 'hopline-restore-'));
  t.after(() => rmSync(home, { recursive: true }));
  const folder = join(home, 'backup');
  const [source, target] = await Promise.all([startNats(), startNats()]);
  t.after(() => Promise.all([source.stop(), target.stop()]));
  await createStreams(source.url);
  await backUpFromSettings(settingsOf(source.url), { folder, onStream: () => {} });
  const edit = (path: string, change: (text: string) => string) => writeFileSync(path, change(readFileSync(path, 'utf8')));
  edit(join(folder, 'A2A_RAW', 'backup.json'), text => text.replace(/(hopline format=1 [^"]*)/, '$1 layouts=4/1@1796000000000'));
  // As in a backup of a version before the hashes of configurations.
  edit(join(folder, 'hopline-backup.json'), text => text.replace(/,\s*"configSha256": "[0-9a-f]+"/g, ''));
  await restoreFromSettings(settingsOf(target.url), { folder, onStream: () => {} });
  const nc = await connect({ servers: target.url });
  t.after(() => nc.close());
  const info = await (await jetstreamManager(nc)).streams.info('A2A_RAW');
  assert.match(info.config.description!, /layouts=4\/1@/);
});
