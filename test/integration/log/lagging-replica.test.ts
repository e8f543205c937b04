import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { FactRecord } from '@hopline/events';
import { freePort } from '@hopline/local-cluster';
import { BUCKETS, FACTS_STREAM, openJetStreamLog } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { type NatsServer, startNats } from '../../support/nats/nats-server.ts';

/** How far the replica is behind: far longer than a request takes, and shorter than the 4 s after which it would elect its own leader. */
const LAG_MS = 400;
const WRITES_MIN = 12;
const WRITES_MAX = 100;

/** Three servers. Everything on a route of `lagging` passes through proxies. */
async function startLagging(t: TestContext): Promise<{ a: NatsServer; lagging: NatsServer; delay(ms: number): void }> {
  const [portA, portB, portC] = [await freePort(), await freePort(), await freePort()];
  const proxies = await Promise.all([portA, portB, portC].map(startNatsProxy));
  const [toA, toB, toC] = proxies.map(({ url }) => url.replace('nats://', ''));
  const start = (name: string, port: number, routes: (string | number)[], advertise: string) => {
    const urls = routes.map(route => `"nats-route://${typeof route === 'number' ? `127.0.0.1:${route}` : route}"`).join(', ');
    const cluster = `{ name: "test", listen: "127.0.0.1:${port}", advertise: "${advertise}", routes: [${urls}], no_advertise: true }`;
    return startNats({ config: `server_name: "${name}"\ncluster ${cluster}` });
  };
  const servers = await Promise.all([
    start('a', portA, [portB], `127.0.0.1:${portA}`),
    start('b', portB, [portA], `127.0.0.1:${portB}`),
    start('lagging', portC, [toA!, toB!], toC!),
  ]);
  t.after(async () => {
    await Promise.all(servers.map(server => server.kill()));
    await Promise.all([...servers.map(server => server.stop()), ...proxies.map(proxy => proxy.close())]);
  });
  return { a: servers[0], lagging: servers[2], delay: ms => proxies.forEach(proxy => void proxy.delay(ms)) };
}

/** Makes `a` the leader of a stream, and waits until all replicas have caught up with it. */
async function leadFromA(nc: NatsConnection, stream: string): Promise<void> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  for (;;) {
    const { cluster } = await jsm.streams.info(stream);
    const replicas = cluster?.replicas ?? [];
    if (cluster?.leader === 'a' && replicas.length === 2 && replicas.every(({ current }) => current)) return;
    if (cluster?.leader !== undefined && cluster.leader !== 'a')
      await nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`, JSON.stringify({ placement: { preferred: 'a' } }));
    await new Promise(resolve => setTimeout(resolve, 250));
  }
}

function factRecord(generation: number, startSeq: number): FactRecord {
  const aggregate = {
    taskId: 't',
    contextId: 'c',
    state: 'TASK_STATE_WORKING',
    generation,
    at: generation,
    role: 'supervisor',
    profile: 'caipe',
    turn: 1,
    messageIds: [],
    lanes: {},
    calls: {},
    producers: {},
    foldedSeq: generation,
  } as const;
  return {
    v: 1,
    facts: [],
    aggregate: structuredClone(aggregate) as unknown as FactRecord['aggregate'],
    startSeq,
    startStoredAt: 1,
  };
}

test('a client of a replica that lags reads what was acknowledged before: tasks, histories, followers and webhooks', {
  timeout: 180_000,
}, async t => {
  const { a, lagging, delay } = await startLagging(t);
  const [writer, reader] = [
    await openJetStreamLog({ servers: a.url, name: 'writer', replicas: 3, openTimeoutMs: 60_000 }),
    await openJetStreamLog({ servers: lagging.url, name: 'reader', replicas: 3, openTimeoutMs: 60_000 }),
  ];
  t.after(() => Promise.all([writer.close(), reader.close()]));
  const [atA, atLagging] = [await connect({ servers: a.url }), await connect({ servers: lagging.url })];
  t.after(() => Promise.all([atA.close(), atLagging.close()]));
  for (const stream of [FACTS_STREAM, `KV_${BUCKETS.pushConfigs}`]) await leadFromA(atA, stream);
  const direct = await jetstreamManager(atLagging, { checkAPI: false });

  const stop = new AbortController();
  const followed: number[] = [];
  const following = (async () => {
    for await (const { record } of await reader.facts.follow('t', 0, stop.signal)) followed.push(record.aggregate.generation);
  })();
  delay(LAG_MS);
  let seq = 0;
  let written = 0;
  let stale = 0;
  // Any replica may answer a direct read, so the test continues until the lagging one has answered.
  while (written < WRITES_MIN || (stale === 0 && written < WRITES_MAX)) {
    const n = ++written;
    ({ seq } = await writer.facts.append(factRecord(n, seq === 0 ? 0 : 1), { expected: seq, id: `t:${n}` }));
    const url = `https://example.org/${n}`;
    await writer.pushConfigs.put('t.hook', { taskId: 't', id: 'hook', url, dialect: '1.0', after: 0 });
    const behind = await direct.direct.getMessage(FACTS_STREAM, { last_by_subj: 'a2a.log.*.t' }).catch(() => null);
    if ((behind?.seq ?? 0) < seq) stale += 1;
    const [last, lastOfEach, hook, hooks] = await Promise.all([
      reader.facts.last('t'),
      reader.facts.lastOfEach(['t']),
      reader.pushConfigs.get('t.hook'),
      reader.pushConfigs.under('t'),
    ]);
    assert.equal(last?.seq, seq, `write ${n}`);
    assert.equal(lastOfEach.get('t')?.seq, seq, `write ${n}`);
    assert.equal(hook?.value.url, url);
    assert.deepEqual(
      hooks.map(({ value }) => value.url),
      [url],
    );
    if (n % 4 === 0) {
      const read: number[] = [];
      for await (const { record } of reader.facts.read('t', 1)) read.push(record.aggregate.generation);
      assert.deepEqual(
        read,
        Array.from({ length: n }, (_, index) => index + 1),
      );
    }
  }
  assert.ok(stale > 0, 'the replica never lagged: the test proves nothing');
  t.diagnostic(`${stale} of ${written} direct reads of the replica were behind`);
  delay(0);
  await until(() => followed.length >= written);
  assert.deepEqual(
    followed,
    Array.from({ length: written }, (_, index) => index + 1),
    'each once, in order',
  );
  stop.abort();
  await following;
});
