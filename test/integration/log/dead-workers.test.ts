import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Role } from '@hopline/events';
import type { Job, Log } from '@hopline/log';
import { workItem } from '@hopline/log/test-kit';
import { type JetStreamLogOptions, openJetStreamLog, WORK_STREAM } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const ROLE: Role = 'agent.mine';
/** Longer than the tests, so that an item is queued again only by another worker. */
const NEVER_MS = 10 * 60_000;
const SILENT_MS = 1_500;
const ITEMS = 20;
/** Longer than an item keeps its slot for the confirmation of its ack (DONE_TIMEOUT_MS of work-item.ts). */
const ACK_IN_SLOT_MS = 10_500;

type Worker = { log: Log; jobs: Job[]; stop(): Promise<void>; end(taskId: string, error?: Error): void };

async function open(t: TestContext) {
  const nats = await startNats();
  t.after(() => nats.stop());
  const openLog = async (options: Partial<JetStreamLogOptions> = {}): Promise<Log> => {
    const log = await openJetStreamLog({
      servers: nats.url,
      name: 'worker',
      ackWaitMs: NEVER_MS,
      unclaimedWaitMs: NEVER_MS,
      ...options,
    });
    t.after(() => log.close());
    return log;
  };
  /** A worker whose items run until `end`. */
  const openWorker = async (options: Partial<JetStreamLogOptions> = {}): Promise<Worker> => {
    const log = await openLog(options);
    const stopping = new AbortController();
    const jobs: Job[] = [];
    const ends = new Map<string, (error?: Error) => void>();
    const taking = log.work.take(ROLE, { slots: 64, signal: stopping.signal }, async job => {
      jobs.push(job);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      ends.set(job.work.taskId, error => (error === undefined ? resolve() : reject(error)));
      await promise;
    });
    taking.catch(() => {});
    const end = (taskId: string, error?: Error) => ends.get(taskId)!(error);
    const stop = async () => {
      stopping.abort();
      for (const { work } of jobs) end(work.taskId);
      await taking;
    };
    return { log, jobs, stop, end };
  };
  const nc = await connect({ servers: nats.url });
  t.after(() => nc.close());
  const jsm = await jetstreamManager(nc);
  const entries = async () => {
    const { state } = await jsm.streams.info('KV_hopline_requeues', { subjects_filter: `$KV.hopline_requeues.${ROLE}.worker.*` });
    const read = (subject: string) => jsm.streams.getMessage('KV_hopline_requeues', { last_by_subj: subject });
    const messages = await Promise.all(Object.keys(state.subjects ?? {}).map(read));
    return messages
      .filter(message => message!.data.length > 0)
      .map(message => message!.json<{ queues: { items: number[] }[] }>());
  };
  /** Waits until the entries of workers name this many items. */
  const claimed = (items: number, workers = 1) =>
    until(async () => {
      const found = await entries();
      const numbers = found.flatMap(({ queues }) => queues.flatMap(queue => queue.items)).length;
      return found.length === workers && numbers === 3 * items;
    }, `${items} items in the entries of ${workers} workers`);
  const request = async (log: Log, count = ITEMS) => {
    const items = Array.from({ length: count }, (_, n) => ({
      ...workItem(`t-${n}`),
      ...(n % 2 === 1 && { owner: { tenant: `${n}` } }),
    }));
    await Promise.all(items.map(item => log.work.request(ROLE, item, { id: item.taskId })));
  };
  return { nats, nc, jsm, openLog, openWorker, entries, claimed, request };
}

const attempts = (workers: Worker[]) => workers.flatMap(({ jobs }) => jobs.map(({ attempt }) => attempt));

test('the items of a dead worker are queued again by one of its siblings, each one once', { timeout: 120_000 }, async t => {
  const { openWorker, claimed, request } = await open(t);
  const dying = await openWorker();
  await request(dying.log);
  await claimed(ITEMS);
  const siblings = [await openWorker(), await openWorker(), await openWorker()];
  await claimed(ITEMS, 4);
  await dying.log.close();
  await until(() => attempts(siblings).length === ITEMS);
  await claimed(ITEMS, 3);
  assert.deepEqual(new Set(attempts(siblings)), new Set([2]));
  assert.deepEqual(attempts(siblings).length, ITEMS, 'a second delivery by another sibling');
  await Promise.all(siblings.map(({ stop }) => stop()));
});

test('the items of the only worker go to the worker that starts after its death', { timeout: 120_000 }, async t => {
  const { openWorker, entries, claimed, request } = await open(t);
  const dying = await openWorker();
  await request(dying.log);
  await claimed(ITEMS);
  await dying.log.close();
  const next = await openWorker();
  await until(() => next.jobs.length === ITEMS);
  assert.deepEqual(new Set(attempts([next])), new Set([2]));
  await next.stop();
  assert.deepEqual(await entries(), [], 'a worker that stops removes its entry');
});

test('a worker whose path is frozen loses its items to its sibling, and does not touch them afterwards', {
  timeout: 120_000,
}, async t => {
  const { nats, nc, openWorker, claimed, request } = await open(t);
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  const frozen = await openWorker({ servers: proxy.url, ackWaitMs: SILENT_MS });
  await request(frozen.log);
  await claimed(ITEMS);
  const sibling = await openWorker({ ackWaitMs: SILENT_MS });
  await claimed(ITEMS, 2);
  proxy.freeze();
  await until(() => new Set(sibling.jobs.map(({ work }) => work.taskId)).size === ITEMS);
  proxy.thaw();
  // It is a new worker, without the items that it has lost.
  await claimed(ITEMS, 2);
  const before = attempts([frozen, sibling]).length;
  const returned: string[] = [];
  // The fifth token of an acknowledgement's subject counts the deliveries.
  nc.subscribe('$JS.ACK.*.*.1.>', { callback: (_error, msg) => void returned.push(`${msg.subject} ${msg.string()}`) });
  await nc.flush();
  for (const { work } of frozen.jobs.slice(0, ITEMS / 2)) frozen.end(work.taskId, new Error('failed'));
  // Its answer follows everything that the worker has sent.
  await frozen.log.work.hasItem(ROLE, 't-0');
  await nc.flush();
  assert.deepEqual(returned, [], 'the worker returns items that its sibling runs');
  await frozen.log.close();
  await claimed(ITEMS, 1);
  await pause(SILENT_MS);
  assert.equal(attempts([frozen, sibling]).length, before, 'delivered once more');
  await sibling.stop();
});

test('a running item costs no message until it is renewed, and stays with its worker', { timeout: 120_000 }, async t => {
  const { nc, openWorker, claimed, request } = await open(t);
  const worker = await openWorker({ ackWaitMs: 300, claimMs: 20_000 });
  const acks: string[] = [];
  nc.subscribe('$JS.ACK.>', { callback: (_error, msg) => void acks.push(msg.string()) });
  await request(worker.log);
  await claimed(ITEMS);
  // Items that are not claimed yet are kept alive one by one.
  await until(() => acks.filter(ack => ack !== '+WPI').length >= ITEMS);
  const claims = acks.length;
  // Three times the ack wait, and over before the worker renews its claims 10 s after its start.
  await pause(900);
  assert.equal(acks.length, claims);
  assert.ok(acks.every(ack => ack === '-NAK {"delay":20000000000}' || ack === '+WPI'));
  await until(() => acks.length >= claims + ITEMS);
  await pause(5_000);
  assert.equal(worker.jobs.length, ITEMS, 'an item was delivered again');
  await worker.stop();
});

test('a worker that cannot be asked keeps its items alive one by one, and the server finds its death', {
  timeout: 120_000,
}, async t => {
  // A worker of an earlier version does the same: it has no entry, and its siblings do not know it.
  const { nats, jsm, openWorker, claimed, request } = await open(t);
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  proxy.lose = ({ subject }) => subject.startsWith('a2a.worker.');
  // If the machine stalls the worker for as long, its items are delivered to the other one.
  const ackWaitMs = 2_000;
  const earlier = await openWorker({ servers: proxy.url, ackWaitMs });
  await request(earlier.log);
  await until(() => earlier.jobs.length === ITEMS);
  const later = await openWorker({ ackWaitMs });
  await claimed(0, 1);
  await pause(2.5 * ackWaitMs);
  assert.deepEqual(
    [earlier.jobs.length, later.jobs.length],
    [ITEMS, 0],
    'a living worker of the earlier version keeps its items',
  );
  await earlier.log.close();
  await until(() => later.jobs.length === ITEMS);
  await later.stop();
  assert.equal((await jsm.streams.info(WORK_STREAM)).state.messages, 0);
});

test('workers of an earlier version get the items of a dead worker when its claim ends', { timeout: 120_000 }, async t => {
  const { nats, openWorker, claimed, request } = await open(t);
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  proxy.lose = ({ subject }) => subject.startsWith('a2a.worker.');
  const dying = await openWorker({ ackWaitMs: 500, claimMs: 3_000 });
  await request(dying.log);
  await claimed(ITEMS);
  const diedAt = performance.now();
  await dying.log.close();
  const earlier = await openWorker({ servers: proxy.url, ackWaitMs: 500 });
  await until(() => earlier.jobs.length === ITEMS);
  assert.ok(performance.now() - diedAt > 1_000);
  await earlier.stop();
});

test('an entry is taken again if the worker that took it has died as well', { timeout: 120_000 }, async t => {
  const { nc, openWorker, claimed, request } = await open(t);
  const dying = await openWorker();
  await request(dying.log, 1);
  await claimed(1);
  await dying.log.close();
  const [subject] = await (async () => {
    const jsm = await jetstreamManager(nc);
    const filter = { subjects_filter: `$KV.hopline_requeues.${ROLE}.worker.*` };
    return Object.keys((await jsm.streams.info('KV_hopline_requeues', filter)).state.subjects ?? {});
  })();
  const jsm = await jetstreamManager(nc);
  const entry = (await jsm.streams.getMessage('KV_hopline_requeues', { last_by_subj: subject! }))!.json<object>();
  await nc.request(subject!, JSON.stringify({ ...entry, takenBy: 'another' }));
  const next = await openWorker();
  await pause(2_000);
  assert.equal(next.jobs.length, 0, 'the taker has some time');
  await until(() => next.jobs.length === 1);
  await next.stop();
});

test('a worker that is back before its sibling does not take the items of the sibling', { timeout: 120_000 }, async t => {
  const { nats, openLog, openWorker, claimed, request } = await open(t);
  const proxies = [await startNatsProxy(nats.port), await startNatsProxy(nats.port)] as const;
  t.after(() => Promise.all(proxies.map(proxy => proxy.close())));
  const late = await openWorker({ servers: proxies[1].url });
  const requester = await openLog();
  await request(requester);
  await claimed(ITEMS);
  const early = await openWorker({ servers: proxies[0].url });
  await claimed(ITEMS, 2);
  for (const proxy of proxies) proxy.cut();
  let gone = 0;
  proxies[0].lose = ({ header }) => {
    if (header.startsWith('NATS/1.0 503')) gone += 1;
    return false;
  };
  proxies[0].mend();
  // The interval between two questions to a missing sibling is 250 ms, and without the reconnect four answers decide.
  await until(() => gone >= 12 || early.jobs.length > 0);
  assert.equal(early.jobs.length, 0, 'the items of the sibling are taken');
  proxies[1].mend();
  await claimed(ITEMS, 2);
  assert.deepEqual(new Set(attempts([late])), new Set([1]));
  await Promise.all([early, late].map(({ stop }) => stop()));
});

test('a worker keeps its items over a restart of nats-server', { timeout: 120_000 }, async t => {
  const { nats, openWorker, claimed, request } = await open(t);
  const workers = [await openWorker({ ackWaitMs: 5_000 }), await openWorker({ ackWaitMs: 5_000 })];
  await request(workers[0]!.log);
  await claimed(ITEMS, 2);
  await nats.kill();
  await nats.restart();
  await pause(8_000);
  assert.deepEqual(new Set(attempts(workers)), new Set([1]));
  assert.equal(attempts(workers).length, ITEMS);
  await Promise.all(workers.map(({ stop }) => stop()));
});

test('the ack of a claimed item reaches the server though the worker was cut off for longer than it keeps the slot', {
  timeout: 120_000,
}, async t => {
  const { nats, jsm, openWorker, claimed, request } = await open(t);
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  const worker = await openWorker({ servers: proxy.url });
  await request(worker.log, 1);
  await claimed(1);
  proxy.cut();
  worker.end('t-0');
  await pause(ACK_IN_SLOT_MS);
  proxy.mend();
  const isEmpty = async () => (await jsm.streams.info(WORK_STREAM)).state.messages === 0;
  await until(isEmpty, 'the item is acknowledged');
  assert.deepEqual(attempts([worker]), [1]);
  await worker.stop();
});
