import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { freePort } from '@hopline/local-cluster';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../kit/until.ts';
import { findBinary } from '../support/nats/nats-server.ts';
import { render, skip } from './rendered-chart.ts';

const NODES = 5;
const STREAMS = 12;
const PASSWORD = 'p-of-the-test';
const TIMEOUT_MS = 120_000;

/** Starts NATS nodes with the nats.conf of the chart, each in the given zone, and resolves with the API of JetStream. */
async function startNodes(t: TestContext, zones: readonly string[]): Promise<JetStreamManager> {
  const manifests = render([`nats.replicas=${NODES}`, 'nats.zoneLabel=topology.kubernetes.io/zone']);
  const text = manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'hopline-nats')!.data![
    'nats.conf'
  ]!;
  const folder = mkdtempSync(join(tmpdir(), 'hopline-zones-'));
  const ports = await Promise.all(zones.map(async () => ({ client: await freePort(), route: await freePort() })));
  const routes = ports.map(({ route }, node) => [`NATS_ROUTE_${node}`, `nats://route:${PASSWORD}@127.0.0.1:${route}`]);
  const passwords = [...text.matchAll(/\$(NATS_\w+_PASSWORD)/g)].map(([, name]) => [name, PASSWORD]);
  const servers = ports.map(({ client, route }, node) => {
    const conf = text
      .replace('0.0.0.0:4222', `127.0.0.1:${client}`)
      .replace('http: 0.0.0.0:8222\n', '')
      .replace('0.0.0.0:6222', `127.0.0.1:${route}`)
      .replace('/data', join(folder, `${node}`));
    const path = join(folder, `${node}.conf`);
    writeFileSync(path, conf);
    const env = { POD_NAME: `node-${node}`, NATS_ZONE_TAG: `zone:${zones[node]}` };
    const variables = { ...env, ...Object.fromEntries([...routes, ...passwords]) };
    return spawn(findBinary(), ['-c', path], { env: variables, stdio: 'ignore' });
  });
  const ended = servers.map(server => new Promise(resolve => server.once('exit', resolve)));
  t.after(async () => {
    for (const server of servers) server.kill('SIGKILL');
    await Promise.all(ended);
    rmSync(folder, { recursive: true });
  });
  const options = { servers: `127.0.0.1:${ports[0]!.client}`, user: 'admin', pass: PASSWORD, waitOnFirstConnect: true };
  const nc = await connect(options);
  t.after(() => nc.close());
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  // A cluster places no stream before every node has joined.
  await until(async () => (await place(jsm, 'FIRST', 1).catch(() => undefined)) !== undefined);
  return jsm;
}

/** Creates a stream, and resolves with its nodes. */
async function place(jsm: JetStreamManager, name: string, replicas: number): Promise<string[]> {
  const { cluster } = await jsm.streams.add({ name, subjects: [`${name}.>`], num_replicas: replicas });
  return [cluster!.leader!, ...(cluster!.replicas ?? []).map(replica => replica.name)];
}

test('on five nodes in three zones the replicas of each stream are in three zones', { skip, timeout: TIMEOUT_MS }, async t => {
  const zones = ['a', 'b', 'c', 'a', 'b'];
  const jsm = await startNodes(t, zones);
  await until(async () => (await place(jsm, 'ALL', 3).catch(() => undefined)) !== undefined);
  for (let stream = 0; stream < STREAMS; stream += 1) {
    const nodes = await place(jsm, `S${stream}`, 3);
    const found = nodes.map(node => zones[Number(node.replace('node-', ''))]);
    assert.deepEqual(found.sort(), ['a', 'b', 'c'], `stream ${stream}: ${nodes}`);
  }
});

test('without zone labels no stream with replicas is created, and the error names the tag', {
  skip,
  timeout: TIMEOUT_MS,
}, async t => {
  const jsm = await startNodes(t, ['', '', '', '', '']);
  const refusal = () => place(jsm, 'S', 3).then(String, String);
  // A node that has not joined yet is refused for another reason.
  await until(async () => /no suitable peers for placement, server tag not unique$/.test(await refusal()), refusal);
});
