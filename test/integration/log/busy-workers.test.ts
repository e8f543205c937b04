import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type Owner, type Role, TENANT_QUEUES, tenantQueueOf } from '@hopline/events';
import { type Job, type Log, Requeued } from '@hopline/log';
import { factRecord, workItem } from '@hopline/log/test-kit';
import { openJetStreamLog, WORK_STREAM } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { collect } from '../../kit/collect.ts';
import { until } from '../../kit/until.ts';
import { type NatsProxy, startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startNats } from '../../support/nats/nats-server.ts';

/** A supervisor opens its queue when it starts; an agent does so with its first work. */
const ROLE: Role = 'supervisor';
const CONSUMER = 'supervisor';
const ACK_WAIT_MS = 2_000;
/** The queues of tenants, and the queue for work without an owner. */
const QUEUES = TENANT_QUEUES + 1;

async function open(t: TestContext) {
  const nats = await startNats();
  t.after(() => nats.stop());
  const proxy: NatsProxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  const openLog = async (ackWaitMs = ACK_WAIT_MS, servers = proxy.url): Promise<Log> => {
    const log = await openJetStreamLog({ servers, name: 'worker', ackWaitMs });
    t.after(() => log.close());
    return log;
  };
  const nc = await connect({ servers: nats.url });
  t.after(() => nc.close());
  const jsm = await jetstreamManager(nc);
  const consumers = async () => {
    const all = await collect(jsm.consumers.list(WORK_STREAM));
    return all;
  };
  return {
    proxy,
    openLog,
    direct: nats.url,
    jsm,
    consumer: () => jsm.consumers.info(WORK_STREAM, CONSUMER),
    /** Whether a worker waits for the next item of every open queue. There must be this many of them. */
    isWaiting: async (queues: number) => {
      const all = await consumers();
      return all.length === queues && all.every(({ num_waiting }) => num_waiting > 0);
    },
    /** Items that the server has delivered and that are not settled. */
    held: async () => (await consumers()).reduce((sum, { num_ack_pending }) => sum + num_ack_pending, 0),
  };
}

test('an item that arrives after its worker was stopped does not run, and does not count as an attempt', {
  timeout: 120_000,
}, async t => {
  const { proxy, openLog, direct, consumer } = await open(t);
  const log = await openLog();
  const stop = new AbortController();
  let begun = 0;
  const taking = log.work.take(ROLE, { slots: 64, signal: stop.signal }, async () => {
    begun += 1;
  });
  await until(() =>
    consumer()
      .then(({ num_waiting }) => num_waiting > 0)
      .catch(() => false),
  );
  const other = await openLog(ACK_WAIT_MS, direct);
  proxy.delay(300);
  await other.work.request(ROLE, workItem('late'), { id: 'late' });
  await until(async () => (await consumer()).num_ack_pending === 1);
  stop.abort();
  await taking;
  assert.equal(begun, 0);
  const again = new AbortController();
  const jobs: Job[] = [];
  await other.work.take(ROLE, { slots: 1, signal: again.signal }, async job => {
    jobs.push(job);
    again.abort();
  });
  assert.deepEqual(
    jobs.map(({ attempt, requeues }) => [attempt, requeues]),
    [[2, 1]],
  );
});

test('an item that waited for a slot begins without the record that came with it, which may be old by then', {
  timeout: 120_000,
}, async t => {
  const { proxy, openLog, direct, isWaiting, held } = await open(t);
  const log = await openLog();
  const other = await openLog(ACK_WAIT_MS, direct);
  const stop = new AbortController();
  const jobs: { job: Job; end: () => void }[] = [];
  const taking = log.work.take(ROLE, { slots: 1, signal: stop.signal }, async job => {
    const { promise, resolve } = Promise.withResolvers<void>();
    jobs.push({ job, end: resolve });
    await promise;
  });
  const owners = new Map<number | undefined, Owner>();
  for (let n = 0; owners.size < 4; n += 1) owners.set(tenantQueueOf({ tenant: `${n}` }), { tenant: `${n}` });
  const request = (owner: Owner, round: string) => {
    const id = `${owner.tenant}-${round}`;
    const record = factRecord(id, 1);
    const newest = { seq: 7, record: { ...record, aggregate: { ...record.aggregate, at: Date.now() } } };
    return other.work.request(ROLE, { ...workItem(id), owner, newest }, { id });
  };
  const endAll = async () => {
    for (let ended = 0; ended < owners.size; ended += 1) {
      await until(() => jobs.length > ended);
      await pause(50);
      jobs[ended]!.end();
    }
  };
  // A queue of tenants is open from its first item on.
  await Promise.all([...owners.values()].map(owner => request(owner, 'first')));
  await endAll();
  jobs.length = 0;
  await until(() => isWaiting(owners.size + 1), 'the worker waits for each of the queues');
  // All items arrive together, because an item that arrives after the first one has ended would not wait for the slot.
  proxy.freeze();
  await Promise.all([...owners.values()].map(owner => request(owner, 'second')));
  await until(async () => (await held()) === owners.size, 'the delivery of all items');
  proxy.thaw();
  await endAll();
  assert.deepEqual(
    jobs.map(({ job }) => job.newest?.seq),
    [7, undefined, undefined, undefined],
  );
  stop.abort();
  await taking;
});

test('a worker holds at most one item of each queue that it cannot run yet', { timeout: 120_000 }, async t => {
  const { openLog, held } = await open(t);
  const log = await openLog();
  const stop = new AbortController();
  const taking = log.work.take(ROLE, { slots: QUEUES, signal: stop.signal }, async () => {
    await new Promise((_, reject) =>
      stop.signal.addEventListener('abort', () => reject(new Requeued('stopping')), { once: true }),
    );
  });
  const owners = Array.from({ length: 10 * QUEUES }, (_, n) => ({ tenant: `${n}` }));
  await Promise.all(owners.map((owner, n) => log.work.request(ROLE, { ...workItem(`t-${n}`), owner }, { id: `t-${n}` })));
  await until(async () => (await held()) >= QUEUES, 'an item in each slot');
  await pause(300);
  assert.ok((await held()) <= 2 * QUEUES, `${await held()} items`);
  stop.abort();
  await taking;
});

test('a queue has the settings of the worker that started last, and is created again if it was deleted', {
  timeout: 120_000,
}, async t => {
  const { openLog, jsm, consumer } = await open(t);
  const stop = new AbortController();
  const done: string[] = [];
  const take = async (ackWaitMs: number) => {
    const log = await openLog(ackWaitMs);
    const taking = log.work.take(ROLE, { slots: 1, signal: stop.signal }, async ({ work }) => void done.push(work.taskId));
    await until(() =>
      consumer()
        .then(({ config }) => config.ack_wait === ackWaitMs * 1_000_000)
        .catch(() => false),
    );
    return { log, taking };
  };
  const first = await take(1_000);
  const second = await take(1_500);
  await until(async () => (await consumer()).num_waiting === 2);
  await jsm.consumers.delete(WORK_STREAM, CONSUMER);
  await first.log.work.request(ROLE, workItem('after'), { id: 'after' });
  await until(() => done.includes('after'));
  assert.deepEqual(done, ['after']);
  stop.abort();
  await Promise.all([first.taking, second.taking]);
});
