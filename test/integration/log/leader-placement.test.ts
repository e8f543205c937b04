import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Layouts, shardOf } from '@hopline/events';
import { factRecord } from '@hopline/log/test-kit';
import { LogNames, openJetStreamLog } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNatsCluster } from '../../support/nats/nats-server.ts';

/** On five nodes a stream has replicas on three of them, so an even spread may need a chain of moves. */
const NODES = [3, 5];
const GROUPS = 4;
const SHARDS = 8;
const LAYOUTS = Layouts.one(SHARDS);
const CHECK_MS = 250;
const SETTLED_MS_MAX = 60_000;

for (const count of NODES) {
  test(`the leaders of ${count} nodes become even to within one, even after a node was killed, and no record is lost`, {
    timeout: 180_000,
  }, async t => {
    const nodes = Array.from({ length: count }, (_, index) => `n${index + 1}`);
    const cluster = await startNatsCluster(nodes);
    t.after(() => cluster.stop());
    const servers = [...cluster.servers.values()].map(({ url }) => url);
    const moved: string[] = [];
    const log = await openJetStreamLog({
      servers: servers.join(','),
      name: 'placer',
      replicas: 3,
      shards: SHARDS,
      groups: GROUPS,
      placesLeaders: { isPlacer: () => true, checkMs: CHECK_MS },
      onEvent: event => void (event.type === 'leader-moved' && moved.push(event.stream)),
    });
    t.after(() => log.close());
    const nc = await connect({ servers });
    t.after(() => nc.close());
    const jsm = await jetstreamManager(nc);
    const names = new LogNames('', GROUPS);
    const leaderOf = async (stream: string) => {
      const { cluster: of } = await jsm.streams.info(stream);
      return of?.replicas?.every(({ current, offline }) => current && !offline) ? of.leader : undefined;
    };
    /** Whether all replicas are current, and no node leads two streams more than another. */
    const isSpread = async (streams: readonly string[]) => {
      const leaders = await Promise.all(streams.map(stream => leaderOf(stream).catch(() => undefined)));
      if (leaders.includes(undefined)) return false;
      const counts = nodes.map(node => leaders.filter(leader => leader === node).length);
      return Math.max(...counts) - Math.min(...counts) <= 1;
    };
    const records = [...names.inputsStreams, ...names.factsStreams];
    const allSpread = async () => (await isSpread(records)) && (await isSpread(names.allStreams()));
    await until(allSpread, 'leaders spread over the nodes', SETTLED_MS_MAX);

    const taskIds = Array.from({ length: 4 * SHARDS }, (_, n) => `t${n}`);
    assert.equal(new Set(taskIds.map(taskId => shardOf(taskId, LAYOUTS) % GROUPS)).size, GROUPS);
    const seqs = new Map<string, number>();
    const appendAll = async (generation: number) => {
      for (const taskId of taskIds) {
        const record = factRecord(taskId, generation, 1);
        const { seq } = await log.facts.append(record, { expected: seqs.get(taskId) ?? 0, id: `${taskId}:me:${generation}` });
        seqs.set(taskId, seq);
      }
    };
    await appendAll(1);
    const victim = cluster.servers.get('n2')!;
    await victim.kill();
    await appendAll(2);
    await victim.restart();
    await until(allSpread, 'leaders spread over the nodes', SETTLED_MS_MAX);
    await appendAll(3);
    for (const taskId of taskIds) {
      const generations: number[] = [];
      for await (const { record } of log.facts.read(taskId, 1)) generations.push(record.aggregate.generation);
      assert.deepEqual(generations, [1, 2, 3], taskId);
    }
    assert.ok(moved.length > 0);
  });
}
