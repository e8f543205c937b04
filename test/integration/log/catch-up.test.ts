import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNatsCluster } from '../../support/nats/nats-server.ts';

const NAMES = ['a', 'b', 'c'];
const RECORDS = 100;
const RECORD = new Uint8Array(1024 ** 2);

/**
 * Shows why the chart gives the probes of NATS more time with a larger volume (`nats.catchUpSeconds`): the full health check, which they
 * use, fails until the copy is complete, while the JetStream check, which determines readiness, already passes.
 */
test('a NATS node that copies a stream fails the whole check until it has all of it, and serves meanwhile', {
  timeout: 180_000,
}, async t => {
  const cluster = await startNatsCluster(NAMES);
  t.after(() => cluster.stop());
  const nc = await connect({ servers: cluster.servers.get('a')!.url });
  t.after(() => nc.close());
  const { streams } = await until(() => jetstreamManager(nc).catch(() => undefined));
  const config = { name: 'log', subjects: ['log'], num_replicas: 3 };
  await until(() => streams.add(config).catch(() => undefined));
  const js = jetstream(nc);
  for (let record = 0; record < RECORDS; record++) await until(() => js.publish('log', RECORD).catch(() => undefined));
  const behind = cluster.servers.get('c')!;
  await behind.kill();
  rmSync(join(behind.dir, 'jetstream'), { recursive: true });
  // A server that stops replaces its Raft log with a snapshot, so the third one has to copy the stream.
  for (const name of ['a', 'b']) {
    await cluster.servers.get(name)!.restart();
    await until(async () => (await streams.info('log').catch(() => undefined))?.cluster?.leader !== undefined);
  }
  await behind.restart();

  const monitor = cluster.monitors.get('c')!;
  const status = async (query: string) => (await fetch(`${monitor}/healthz${query}`)).status;
  const messages = async () => ((await (await fetch(`${monitor}/jsz`)).json()) as { messages: number }).messages;
  await until(async () => (await status('?js-server-only=true')) === 200);
  await until(async () => {
    assert.equal(await status('?js-server-only=true'), 200, 'readiness does not change');
    return (await status('')) === 200;
  });
  assert.equal(await messages(), RECORDS, 'the whole check is ok only with the whole stream');
});
