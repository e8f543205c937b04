import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inputRecord } from '@hopline/log/test-kit';
import { INPUTS_STREAM } from '@hopline/log-jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startedLog } from './started-log.ts';

/** Each answer takes longer than the time after which a request is repeated. */
const DELAY_MS = 1_100;

test('a log whose server needs more than two seconds for each answer is read, and leaves no consumers behind', {
  timeout: 120_000,
}, async t => {
  const { server, jsm, open } = await startedLog(t);
  const proxy = await startNatsProxy(server.port);
  t.after(() => proxy.close());
  const log = await open({ servers: proxy.url });
  proxy.delay(DELAY_MS);
  const stop = new AbortController();
  const received: number[] = [];
  const reading = (async () => {
    const shard = log.layouts.shardOf('task-1');
    for await (const { seq } of log.inputs.readShard(shard, 1, stop.signal)) received.push(seq);
  })();
  await Promise.all([
    log.inputs.append('task-1', inputRecord(1, 'x'), { id: 'task-1:1' }),
    log.facts.last('task-0'),
    log.inputs.extent(),
    log.leases.get('shard.0'),
    log.tasks.get('task-0'),
  ]);
  await until(() => received.length === 1, 'the reader receives the input');
  const consumers = async () => (await jsm.streams.info(INPUTS_STREAM)).state.consumer_count;
  // Longer than a heartbeat of the server takes: the reader keeps its consumer.
  await log.inputs.append('task-1', inputRecord(2, 'y'), { id: 'task-1:2' });
  await until(() => received.length === 2, 'the reader receives the second input');
  assert.equal(await consumers(), 1);
  stop.abort();
  await reading;
  await until(async () => (await consumers()) === 0, 'the consumer is removed');
});

test('a consumer is removed if its reader ended before the answer to its creation arrived', { timeout: 120_000 }, async t => {
  const { server, jsm, open } = await startedLog(t);
  const proxy = await startNatsProxy(server.port);
  t.after(() => proxy.close());
  const log = await open({ servers: proxy.url });
  const stop = new AbortController();
  proxy.delay(DELAY_MS);
  const reading = (async () => {
    for await (const _input of log.inputs.readShard(0, 1, stop.signal)) assert.fail('there are no inputs');
  })();
  const consumers = async () => (await jsm.streams.info(INPUTS_STREAM)).state.consumer_count;
  await until(async () => (await consumers()) === 1, 'the consumer is created');
  stop.abort();
  await reading;
  await until(async () => (await consumers()) === 0, 'the consumer is removed');
});

test('a check whose requests get no answer sends each request at most once per try', { timeout: 120_000 }, async t => {
  const { server, open } = await startedLog(t);
  const proxy = await startNatsProxy(server.port);
  t.after(() => proxy.close());
  const log = await open({ servers: proxy.url });
  const nc = await connect({ servers: server.url });
  t.after(() => nc.close());
  let requests = 0;
  nc.subscribe(`$JS.API.STREAM.INFO.${INPUTS_STREAM}`, {
    callback: () => {
      requests += 1;
    },
  });
  await nc.flush();
  proxy.lose = ({ payload }) => payload.includes('stream_info_response');
  await assert.rejects(log.check(), { name: 'LogUnavailable' });
  // A check takes 3 s, and a try is repeated after 2 s; on a loaded machine the second one may come too late.
  assert.ok(requests >= 1 && requests <= 2, `${requests} requests`);
});
