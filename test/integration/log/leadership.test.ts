import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Log } from '@hopline/log';
import { FACTS_STREAM, openJetStreamLog } from '@hopline/log-jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNats, startNatsCluster } from '../../support/nats/nats-server.ts';

const leadershipOf = async (log: Log) => (await log.facts.extent()).ofShard(0).leadership;

test('the leadership of the facts of one server lasts until it restarts', { timeout: 120_000 }, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const open = async () => {
    const log = await openJetStreamLog({ servers: nats.url, name: 'leadership' });
    t.after(() => log.close());
    return log;
  };
  const [log, other] = [await open(), await open()];
  const first = await leadershipOf(log);
  assert.ok(first);
  assert.equal(await leadershipOf(other), first);
  await nats.kill();
  await nats.restart();
  const second = await leadershipOf(log);
  assert.ok(second);
  assert.notEqual(second, first);
  assert.equal(await leadershipOf(other), second);
});

test('the leadership of replicated facts stays the same until another server leads them', { timeout: 120_000 }, async t => {
  const cluster = await startNatsCluster(['n1', 'n2', 'n3']);
  t.after(() => cluster.stop());
  const servers = [...cluster.servers.values()].map(({ url }) => url);
  const open = async (url: string) => {
    const log = await openJetStreamLog({ servers: url, name: 'leadership', replicas: 3 });
    t.after(() => log.close());
    return log;
  };
  const [log, other] = [await open(servers[0]!), await open(servers[1]!)];
  /** A loaded machine may elect another leader between two readings. */
  const agreed = () =>
    until(async () => {
      const [here, there] = [await leadershipOf(log), await leadershipOf(other)];
      return here === there && here;
    }, 'both processes see the same leadership');
  const first = await agreed();
  const nc = await connect({ servers: servers[2]! });
  t.after(() => nc.close());
  await nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${FACTS_STREAM}`, '', { timeout: 10_000 });
  await until(async () => (await agreed()) !== first, 'another leader');
});
