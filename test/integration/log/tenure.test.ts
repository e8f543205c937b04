import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Log } from '@hopline/log';
import { FACTS_STREAM, openJetStreamLog } from '@hopline/log-jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNats, startNatsCluster } from '../../support/nats/nats-server.ts';

const tenureOf = async (log: Log) => (await log.facts.extent()).ofShard(0).tenure;

test('the tenure of the facts of one server lasts until it restarts', { timeout: 60_000 }, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const open = async () => {
    const log = await openJetStreamLog({ servers: nats.url, name: 'tenure' });
    t.after(() => log.close());
    return log;
  };
  const [log, other] = [await open(), await open()];
  const first = await tenureOf(log);
  assert.ok(first);
  assert.equal(await tenureOf(other), first);
  await nats.kill();
  await nats.restart();
  const second = await tenureOf(log);
  assert.ok(second);
  assert.notEqual(second, first);
  assert.equal(await tenureOf(other), second);
});

test('the tenure of replicated facts lasts until they have another leader', { timeout: 120_000 }, async t => {
  const cluster = await startNatsCluster(['n1', 'n2', 'n3']);
  t.after(() => cluster.stop());
  const servers = [...cluster.servers.values()].map(({ url }) => url);
  const open = async (url: string) => {
    const log = await openJetStreamLog({ servers: url, name: 'tenure', replicas: 3 });
    t.after(() => log.close());
    return log;
  };
  const [log, other] = [await open(servers[0]!), await open(servers[1]!)];
  const first = await tenureOf(log);
  assert.ok(first);
  assert.equal(await tenureOf(other), first);
  const nc = await connect({ servers: servers[2]! });
  t.after(() => nc.close());
  await nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${FACTS_STREAM}`);
  await until(async () => ((await tenureOf(log)) ?? first) !== first, 'another leader');
  assert.equal(await tenureOf(other), await tenureOf(log));
});
