import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InputWriter } from '@hopline/log';
import { INPUTS_STREAM, openJetStreamLog } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { startNatsCluster } from '../../support/nats/nats-server.ts';

const NODES = ['a', 'b', 'c'];
/** A third of their consumers is placed on the frozen node, until the others count it as gone after about 10 s. */
const READS = 12;
/** A request without an answer takes 2 s. When all tries used one consumer name, such a read failed after 20 s. */
const READ_MS_MAX = 15_000;

test('a history is read in bounded time while a follower of its stream is frozen', { timeout: 180_000 }, async t => {
  const cluster = await startNatsCluster(NODES);
  t.after(() => cluster.stop());
  const servers = [...cluster.servers.values()].map(({ url }) => url);
  const setup = await openJetStreamLog({ servers: servers.join(','), name: 'setup', replicas: 3, openTimeoutMs: 60_000 });
  await setup.close();
  const nc = await connect({ servers });
  const info = await (await jetstreamManager(nc, { checkAPI: false })).streams.info(INPUTS_STREAM);
  await nc.close();
  const leader = info.cluster!.leader!;
  const metaLeader = await cluster.metaLeader();
  const frozen = cluster.servers.get(NODES.find(name => name !== leader && name !== metaLeader)!)!;
  const log = await openJetStreamLog({ servers: cluster.servers.get(leader)!.url, name: 'reader', replicas: 3 });
  t.after(() => log.close());
  const writer = new InputWriter(log.inputs, { taskId: 'task', producer: { id: 'agent', agent: 'a', turn: 1, attempt: 1 } });
  writer.token('answer', 'text');
  await writer.flush();
  frozen.pause();
  t.after(() => frozen.resume());
  const reads = await Promise.all(
    Array.from({ length: READS }, async () => {
      const startedAt = performance.now();
      let records = 0;
      for await (const _record of log.inputs.read('task')) records += 1;
      return { records, ms: Math.round(performance.now() - startedAt) };
    }),
  );
  const slowestMs = Math.max(...reads.map(({ ms }) => ms));
  t.diagnostic(`slowest read ${slowestMs} ms`);
  assert.deepEqual(new Set(reads.map(({ records }) => records)), new Set([1]));
  assert.ok(slowestMs < READ_MS_MAX, `${slowestMs} ms`);
});
