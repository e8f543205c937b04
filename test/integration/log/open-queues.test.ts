import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type Owner, type Role, tenantQueueOf } from '@hopline/events';
import type { Log } from '@hopline/log';
import { workItem } from '@hopline/log/test-kit';
import { type JetStreamLogOptions, openJetStreamLog, WORK_STREAM } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const ROLE: Role = 'agent.mine';
const OWNER: Owner = { tenant: 'first' };
const OTHER: Owner = Array.from({ length: 50 }, (_, n) => ({ tenant: `${n}` })).find(
  owner => tenantQueueOf(owner) !== tenantQueueOf(OWNER),
)!;

const UNCLAIMED_WAIT_MS = 2_000;

async function connectTo(t: TestContext, servers: string) {
  const nc = await connect({ servers });
  t.after(() => nc.close());
  return nc;
}

async function open(t: TestContext) {
  const nats = await startNats();
  t.after(() => nats.stop());
  const openLog = async (options: Partial<JetStreamLogOptions> = {}): Promise<Log> => {
    const log = await openJetStreamLog({ servers: nats.url, name: 'worker', ...options });
    t.after(() => log.close());
    return log;
  };
  /** The tasks that a worker takes. Their items are done at once, or stay until the worker stops. */
  const work = (log: Log, slots = 64, stays?: Promise<void>) => {
    const stop = new AbortController();
    const taken: string[] = [];
    const taking = log.work.take(ROLE, { slots, signal: stop.signal }, async job => {
      taken.push(job.work.taskId);
      await stays;
    });
    t.after(async () => {
      stop.abort();
      await taking;
    });
    return taken;
  };
  const request = (log: Log, taskId: string, owner?: Owner) =>
    log.work.request(ROLE, { ...workItem(taskId), ...(owner && { owner }) }, { id: taskId });
  const jsm = await jetstreamManager(await connectTo(t, nats.url));
  const consumers = async () => {
    const names: string[] = [];
    for await (const { name } of jsm.consumers.list(WORK_STREAM)) names.push(name);
    return names.sort();
  };
  return { nats, openLog, work, request, consumers };
}

test('the queue of an agent for work without an owner has a consumer from its first work on', { timeout: 120_000 }, async t => {
  const { nats, openLog, work, request, consumers } = await open(t);
  const nc = await connectTo(t, nats.url);
  let looks = 0;
  nc.subscribe(`$JS.API.STREAM.INFO.${WORK_STREAM}`, {
    callback: () => {
      looks += 1;
    },
  });
  await nc.flush();
  const log = await openLog();
  looks = 0;
  const taken = work(await openLog());
  await until(() => looks > 0);
  assert.deepEqual(await consumers(), []);
  // The second request comes within a second of the first, which may arrive before the worker listens.
  await Promise.all([request(log, 'first'), request(log, 'second')]);
  await until(() => taken.length === 2);
  assert.deepEqual(await consumers(), ['agent-mine']);
  const jsm = await jetstreamManager(nc);
  const { config } = await jsm.consumers.info(WORK_STREAM, 'agent-mine');
  assert.equal(config.ack_wait, UNCLAIMED_WAIT_MS * 1_000_000, 'an item that dies before an entry names it waits for this long');
});

test('an agent that has ever had work takes work without a message, as from a relay of an earlier version', {
  timeout: 120_000,
}, async t => {
  const { nats, openLog, work, request } = await open(t);
  const log = await openLog();
  const stop = new AbortController();
  const taking = log.work.take(ROLE, { slots: 1, signal: stop.signal }, async () => stop.abort());
  await request(log, 'first');
  await taking;
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  proxy.lose = ({ subject, payload }) => subject === 'a2a.worker.agent.mine' && payload.length === 1;
  let pulls = 0;
  const nc = await connectTo(t, nats.url);
  nc.subscribe('$JS.API.CONSUMER.MSG.NEXT.>', {
    callback: () => {
      pulls += 1;
    },
  });
  await nc.flush();
  const taken = work(await openLog({ servers: proxy.url }));
  await until(() => pulls > 0);
  await request(log, 'second');
  await until(() => taken.length === 1);
});

test('a queue of tenants has a consumer from its first work on', { timeout: 120_000 }, async t => {
  const { openLog, work, request, consumers } = await open(t);
  const log = await openLog();
  const taken = [work(log), work(await openLog())];
  await request(log, 'without');
  await until(() => taken.flat().length === 1);
  assert.deepEqual(await consumers(), ['agent-mine']);
  await request(log, 'of a tenant'.replaceAll(' ', '-'), OWNER);
  await until(() => taken.flat().length === 2);
  assert.deepEqual(await consumers(), ['agent-mine', `agent-mine_${tenantQueueOf(OWNER)}`]);
  await request(log, 'of-another', OTHER);
  await until(() => taken.flat().length === 3);
  assert.equal((await consumers()).length, 3);
});

test('work that came before its worker, or whose message is lost, is found', { timeout: 120_000 }, async t => {
  const { nats, openLog, work, request } = await open(t);
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  proxy.lose = ({ subject, payload }) => subject.startsWith('a2a.worker.') && payload.length === 1;
  const log = await openLog();
  await request(log, 'before', OWNER);
  const taken = work(await openLog({ servers: proxy.url }));
  await until(() => taken.length === 1);
  await request(log, 'lost', OTHER);
  await until(() => taken.length === 2);
  await request(log, 'lost-too');
  await until(() => taken.length === 3);
});

test('the workers of a role together run at most as many items of one queue as the setting allows', {
  timeout: 120_000,
}, async t => {
  const { openLog, work, request } = await open(t);
  const options = { queueTurnsMax: 3 };
  const log = await openLog(options);
  const end = Promise.withResolvers<void>();
  t.after(() => end.resolve());
  const taken = [work(log, 64, end.promise), work(await openLog(options), 64, end.promise)];
  for (let n = 0; n < 5; n += 1) await request(log, `t-${n}`);
  await request(log, 'of-a-tenant', OWNER);
  await until(() => taken.flat().length === 4);
  await pause(500);
  assert.equal(taken.flat().length, 4, 'three of one queue and one of another');
  end.resolve();
  await until(() => taken.flat().length === 6);
});

test('a consumer that no worker reads is removed a day after its last item has expired, or never if items do not expire', {
  timeout: 120_000,
}, async t => {
  const DAY_NANOS = 24 * 60 * 60 * 1e9;
  const { nats, openLog, work, request } = await open(t);
  const jsm = await jetstreamManager(await connectTo(t, nats.url));
  const threshold = async () => (await jsm.consumers.info(WORK_STREAM, 'agent-mine')).config.inactive_threshold ?? 0;
  const taken = work(await openLog());
  await request(await openLog(), 'first');
  await until(() => taken.length === 1);
  const ageNanos = (await jsm.streams.info(WORK_STREAM)).config.max_age;
  assert.ok(ageNanos > 0);
  assert.equal(await threshold(), ageNanos + DAY_NANOS);
  // A worker that starts updates the consumer, even one of an earlier version, which has no threshold.
  await jsm.streams.update(WORK_STREAM, { max_age: 0 });
  work(await openLog());
  await until(async () => (await threshold()) === 0);
});
