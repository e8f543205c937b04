import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { LogUnavailable } from '@hopline/log';
import { workItem } from '@hopline/log/test-kit';
import {
  BUCKETS,
  FACTS_STREAM,
  INPUTS_STREAM,
  type JetStreamLogOptions,
  type LogEvent,
  LogNames,
  openJetStreamLog,
  WORK_STREAM,
} from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { succeeds } from '../../kit/succeeds.ts';
import { until } from '../../kit/until.ts';
import { startNatsCluster } from '../../support/nats/nats-server.ts';
import { startedLog } from './started-log.ts';

const LISTS = `KV_${BUCKETS.taskLists}`;
const restoresLost = { checkMs: 20, checksMin: 3 };
/** The options of a relay, and the events of all relays that were opened with them. */
function relays(): { events: LogEvent[]; options: Partial<JetStreamLogOptions> } {
  const events: LogEvent[] = [];
  return { events, options: { user: 'relay', restoresLost, onEvent: event => events.push(event) } };
}

const lostIn = (events: readonly LogEvent[]) => events.flatMap(event => (event.type === 'streams-lost' ? event.streams : []));

test('a service names the stream that does not exist, in its check and in the errors of its requests', async t => {
  const { jsm, open } = await startedLog(t);
  const log = await open();
  await log.check();
  await jsm.streams.delete(LISTS);
  await assert.rejects(log.check(), new LogUnavailable(`${LISTS}: the stream does not exist`));
  const refused = new RegExp(`${LISTS}: the stream does not exist`);
  await Promise.all([
    assert.rejects(log.taskLists.put('a', {} as never), refused),
    assert.rejects(log.taskLists.match(['a']), refused),
    assert.rejects(log.taskLists.get('a'), refused),
  ]);
});

test('an item that has the sequence of a lost item runs beside it, and is still in the queue when that one ends', {
  timeout: 120_000,
}, async t => {
  const { options } = relays();
  const { jsm, open } = await startedLog(t);
  const log = await open(options);
  const stop = new AbortController();
  const ends = new Map<string, () => void>();
  const taking = log.work.take('agent.mine', { slots: 8, signal: stop.signal }, ({ work }) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    ends.set(work.taskId, resolve);
    return promise;
  });
  await log.work.request('agent.mine', workItem('lost'), { id: 'lost' });
  await until(() => ends.has('lost'));
  await jsm.streams.delete(WORK_STREAM);
  const request = () => log.work.request('agent.mine', workItem('other'), { id: 'other' });
  await until(
    () =>
      request().then(
        () => true,
        () => false,
      ),
    'the stream exists again',
  );
  await until(() => ends.has('other'), 'the item runs');
  assert.equal((await jsm.streams.info(WORK_STREAM)).state.last_seq, 1);
  ends.get('lost')!();
  stop.abort();
  // The worker ends after its items.
  assert.equal(await Promise.race([taking.then(() => 'ended'), log.work.hasItem('agent.mine', 'other')]), true);
  ends.get('other')!();
  await taking;
  assert.equal(await log.work.hasItem('agent.mine', 'other'), false);
});

test('two running relays create a lost bucket again, and change no other stream', async t => {
  const { events, options } = relays();
  const { jsm, open } = await startedLog(t);
  const [log] = [await open(options), await open(options)];
  const maxAge = 3_600_000_000_000;
  await jsm.streams.update(INPUTS_STREAM, { max_age: maxAge });
  const before = (await jsm.streams.info(INPUTS_STREAM)).config;
  const lists = (await jsm.streams.info(LISTS)).config;
  await jsm.streams.delete(LISTS);
  await until(() => succeeds(log.check()), 'the bucket exists again');
  await until(() => lostIn(events).length > 0);
  assert.deepEqual([...new Set(lostIn(events))], [LISTS]);
  assert.deepEqual((await jsm.streams.info(LISTS)).config, lists);
  assert.deepEqual((await jsm.streams.info(INPUTS_STREAM)).config, before);
  assert.equal(await log.taskLists.put('a.b.00.t.x', {} as never), 1);
});

test('a relay creates all streams again when NATS comes back with an empty disk', { timeout: 120_000 }, async t => {
  const { events, options } = relays();
  const { server, jsm, open } = await startedLog(t);
  const log = await open({ ...options, groups: 2, shards: 8 });
  const startedAt = Date.now();
  await server.kill();
  rmSync(join(server.dir, 'jetstream'), { recursive: true });
  await server.restart();
  await until(() => succeeds(log.check()), 'the streams exist again');
  const names = new LogNames('', 2);
  await until(() => lostIn(events).length > 0);
  assert.deepEqual(lostIn(events).toSorted(), names.allStreams().toSorted());
  for (const name of names.inputsStreams) {
    // The connection of this test may still be away.
    const { config, state } = await until(() => jsm.streams.info(name).catch(() => undefined));
    assert.ok(state.first_seq >= startedAt * 1_000, 'later than every sequence that a process remembers');
    assert.match(config.description!, /shards=8 groups=2$/);
  }
  await (await open({ user: 'ingress' })).check();
});

test('streams of another log are not completed: the reason is logged once', async t => {
  const { events, options } = relays();
  const { jsm, open } = await startedLog(t);
  const log = await open(options);
  await jsm.streams.update(FACTS_STREAM, { description: 'hopline format=1 shards=8' });
  await jsm.streams.delete(INPUTS_STREAM);
  const refusals = () => events.filter(({ type }) => type === 'creation-refused');
  await until(() => refusals().length > 0);
  await assert.rejects(log.check(), /A2A_RAW: the stream does not exist/);
  await assert.rejects(jsm.streams.info(INPUTS_STREAM), /not found/);
  assert.equal(refusals().length, 1);
  assert.match(JSON.stringify(refusals()), /A2A_LOG has layouts that this process does not know/);
  assert.deepEqual(lostIn(events), []);
});

async function threeNodes(t: TestContext) {
  const cluster = await startNatsCluster(['a', 'b', 'c']);
  t.after(() => cluster.stop());
  const nc = await connect({ servers: cluster.servers.get('a')!.url });
  t.after(() => nc.close());
  return { cluster, jsm: await jetstreamManager(nc, { checkAPI: false }) };
}

test('without a quorum no stream counts as lost', { timeout: 180_000 }, async t => {
  const { events, options } = relays();
  const { cluster, jsm } = await threeNodes(t);
  const servers = cluster.servers.get('a')!.url;
  const log = await openJetStreamLog({ ...options, servers, name: 'quorum', replicas: 3 });
  t.after(() => log.close());
  const createdAt = async () => (await until(() => jsm.streams.info(INPUTS_STREAM).catch(() => undefined))).created;
  const before = await createdAt();
  const others = [cluster.servers.get('b')!, cluster.servers.get('c')!];
  await Promise.all(others.map(server => server.kill()));
  // The check asks each stream repeatedly for 3 s, like the checks of a relay.
  await assert.rejects(log.check(), LogUnavailable);
  await assert.rejects(log.check(), LogUnavailable);
  await Promise.all(others.map(server => server.restart()));
  await until(() => succeeds(log.check()), 'the log is ready again');
  assert.equal(await createdAt(), before);
  assert.deepEqual(
    events.filter(({ type }) => type === 'streams-lost' || type === 'creation-refused'),
    [],
  );
});
