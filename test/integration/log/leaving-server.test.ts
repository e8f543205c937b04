import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InputWriter } from '@hopline/log';
import { type LogEvent, openJetStreamLog } from '@hopline/log-jetstream';
import { until } from '../../kit/until.ts';
import { startNatsCluster } from '../../support/nats/nats-server.ts';

const NODES = ['a', 'b', 'c'];
const PRODUCER = { id: 'agent', agent: 'a', turn: 1, attempt: 1 };

/**
 * A server in lame duck mode removes the consumers of readers and reports none of them. The server of the reader's connection reports only that another
 * one leaves (ADR 258).
 */
test('a reader opens another consumer as soon as a server leaves the cluster, and misses no record', {
  timeout: 120_000,
}, async t => {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const cluster = await startNatsCluster(NODES, { isAdvertised: true });
  t.after(() => cluster.stop());
  const [own, leaving] = NODES.map(name => cluster.servers.get(name)!);
  const events: LogEvent[] = [];
  const log = await openJetStreamLog({
    servers: own!.url,
    name: 'reader',
    replicas: 3,
    openTimeoutMs: 60_000,
    onEvent: event => void events.push(event),
  });
  const writer = new InputWriter(log.inputs, { taskId: 'task', producer: PRODUCER });
  const write = async (text: string) => {
    writer.token('answer', text);
    await writer.flush();
  };
  const records: number[] = [];
  t.after(() => log.close());
  const readShard = async (shard: number) => {
    for await (const { seq } of log.inputs.readShard(shard, 1, stop.signal)) records.push(seq);
  };
  for (let shard = 0; shard < log.shards; shard += 1) void readShard(shard);
  await write('before');
  await until(() => records.length === 1, 'the record before');
  const restarts = () => events.filter(({ type }) => type === 'reader-restarted').length;
  assert.equal(restarts(), 0);
  await leaving!.lameDuck();
  await until(() => restarts() > 0, 'another consumer');
  await write('after');
  await until(() => records.length === 2, 'the record after');
  assert.equal(new Set(records).size, 2);
});
