import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LOG_PREFIX, RAW_PREFIX, shardOf } from '@hopline/events';
import { type Job, Requeued } from '@hopline/log';
import { factRecord, inputRecord, workItem } from '@hopline/log/test-kit';
import { openJetStreamLog, WORK_STREAM } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const ATTEMPTS_MAX = 2;
const ACK_WAIT_MS = 500;
const PERIODS_MAX = 8;
const LOST = 3;

test('messages that are lost on their way to a reader are still read once and in order', {
  timeout: 120_000,
}, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  const log = await openJetStreamLog({ servers: proxy.url, name: 'reader' });
  t.after(() => log.close());
  const taskId = 'task';
  const inputs: number[] = [];
  const facts: number[] = [];
  for (let n = 1; n <= 4; n += 1) {
    inputs.push((await log.inputs.append(taskId, inputRecord(n), { id: `${taskId}:in:${n}` })).seq);
    const record = factRecord(taskId, n, n === 1 ? 0 : facts[0]);
    facts.push((await log.facts.append(record, { expected: facts.at(-1) ?? 0, id: `${taskId}:r:${n}` })).seq);
  }
  const tasks = [1, 2, 3, 4].map(n => `task-${n}`);
  const newest: number[] = [];
  for (const id of tasks) newest.push((await log.facts.append(factRecord(id, 1), { expected: 0, id: `${id}:r:1` })).seq);
  const newestOfEach = async () => {
    const found = await log.facts.lastOfEach(tasks);
    return tasks.map(id => found.get(id)?.seq);
  };
  const shard = shardOf(taskId, log.layouts);
  const seqsOf = async (read: AsyncIterable<{ seq: number } | readonly { seq: number }[]>, count: number) => {
    const seqs: number[] = [];
    for await (const found of read) if (seqs.push(...[found].flat().map(({ seq }) => seq)) >= count) break;
    return seqs;
  };
  const never = new AbortController().signal;
  const reads = {
    'the inputs of a shard': [RAW_PREFIX, inputs, () => seqsOf(log.inputs.readShard(shard, inputs[0]!, never), 4)],
    'the facts of a task': [LOG_PREFIX, facts, () => seqsOf(log.facts.read(taskId, 1), 5)],
    'the newest records of tasks': [LOG_PREFIX, newest, newestOfEach],
    'the facts of a shard': [LOG_PREFIX, facts, () => seqsOf(log.facts.readStoredShard(shard, { seq: 1 }), 5)],
  } as const;
  for (const [what, [prefix, stored, read]] of Object.entries(reads)) {
    for (const nth of [1, 2, 4]) {
      let delivered = 0;
      // A message from a consumer, or from the answer to a direct get.
      const isDelivery = ({ subject, header }: { subject: string; header: string }) =>
        subject.startsWith(`${prefix}.`) || header.includes(`\r\nNats-Subject: ${prefix}.`);
      proxy.lose = frame => isDelivery(frame) && ++delivered === nth;
      assert.deepEqual(await read(), stored, `${what}, without delivery ${nth}`);
      assert.ok(delivered > nth, 'nothing was lost: the test proves nothing');
    }
  }
});

test('a watch continues after a lost delivery although further ones arrive all the time', { timeout: 120_000 }, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  const [log, writer] = await Promise.all([
    openJetStreamLog({ servers: proxy.url, name: 'watcher' }),
    openJetStreamLog({ servers: nats.url, name: 'writer' }),
  ]);
  t.after(() => Promise.all([log.close(), writer.close()]));
  const stop = new AbortController();
  t.after(() => stop.abort());
  const seen: number[] = [];
  let isReady = false;
  const watching = (async () => {
    for await (const change of log.leases.watch(stop.signal))
      if (change.type === 'entry') seen.push(change.revision);
      else isReady = true;
  })();
  await until(() => isReady);
  const put = (key: string) => writer.leases.put(key, { owner: key });
  await put('relay.first');
  await until(() => seen.length === 1);
  let isLost = false;
  proxy.lose = ({ subject }) => {
    const losesThis = !isLost && subject.endsWith('.relay.lost');
    isLost ||= losesThis;
    return losesThis;
  };
  const lost = await put('relay.lost');
  await until(() => isLost, 'the delivery is lost');
  // Shorter than the interval of heartbeats, which the server sends only to an idle consumer.
  const others = setInterval(() => void put('relay.other'), 500);
  t.after(() => clearInterval(others));
  await until(() => seen.includes(lost), 'the watch yields the lost revision', 20_000);
  clearInterval(others);
  stop.abort();
  await watching;
});

test('an item that is delivered again to the process that runs it runs once, and counts as one attempt however it ends', {
  timeout: 120_000,
}, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  const log = await openJetStreamLog({ servers: proxy.url, name: 'worker', attemptsMax: ATTEMPTS_MAX, ackWaitMs: ACK_WAIT_MS });
  t.after(() => log.close());
  const nc = await connect({ servers: nats.url });
  t.after(() => nc.close());
  const { consumers } = await jetstreamManager(nc);
  const isRedelivered = async () => {
    for await (const { num_redelivered: redelivered } of consumers.list(WORK_STREAM)) if (redelivered > 0) return true;
    return false;
  };
  for (const [name, end, requeued] of [
    ['requeued', () => Promise.reject(new Requeued('stopping')), 1],
    ['rejected', () => Promise.reject(new Error('failed')), 0],
    ['done', () => Promise.resolve(), undefined],
  ] as const) {
    let deliveries = 0;
    proxy.lose = ({ subject }) => {
      if (subject.startsWith('a2a.work.')) deliveries += 1;
      // A worker that cannot be asked does not claim its items, but keeps them alive.
      return subject.startsWith('a2a.worker.');
    };
    // Its long pull waits at the server while the path is frozen. Agents pull for a second (ADR 262).
    const role = 'supervisor';
    await log.work.request(role, workItem(name), { id: name });
    const stop = new AbortController();
    const jobs: Pick<Job, 'attempt' | 'requeues' | 'exhausted'>[] = [];
    const finish = Promise.withResolvers<void>();
    const taking = log.work.take(role, { slots: 64, signal: stop.signal }, async ({ attempt, requeues, exhausted }) => {
      jobs.push({ attempt, requeues, exhausted });
      if (jobs.length > 1) return;
      await finish.promise;
      await end();
    });
    await until(() => deliveries > 0);
    // No keep-alive arrives until the server delivers the item again.
    proxy.freeze();
    await until(isRedelivered, 'the item is delivered again');
    proxy.thaw();
    await until(() => deliveries > 1, 'its second delivery arrives');
    // If the machine stalls the worker for longer than the ack wait, the item is delivered again, but not in each period.
    let delivered = 0;
    for (let periods = 1; delivered !== deliveries; periods += 1) {
      assert.ok(periods <= PERIODS_MAX, 'kept alive under the newest delivery');
      delivered = deliveries;
      await new Promise(resolve => setTimeout(resolve, 3 * ACK_WAIT_MS));
    }
    assert.deepEqual([name, jobs.length], [name, 1]);
    finish.resolve();
    await until(async () => !(await log.work.hasItem(role, name)));
    const next = { attempt: delivered + 1, requeues: delivered - 1 + (requeued ?? 0), exhausted: false };
    assert.deepEqual([name, jobs[1]], [name, requeued === undefined ? undefined : next]);
    stop.abort();
    await taking;
  }
});

test('deliveries that do not reach a worker do not count as attempts', { timeout: 120_000 }, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  const log = await openJetStreamLog({ servers: proxy.url, name: 'worker', attemptsMax: ATTEMPTS_MAX, ackWaitMs: ACK_WAIT_MS });
  t.after(() => log.close());
  let lost = 0;
  let deliveries = 0;
  proxy.lose = ({ subject }) => {
    if (!subject.startsWith('a2a.work.')) return false;
    deliveries += 1;
    // The first delivery reaches its worker, which fails.
    if (deliveries === 1 || lost === LOST) return false;
    lost += 1;
    return true;
  };
  await log.work.request('agent.mine', workItem('task'), { id: 'task' });
  const stop = new AbortController();
  const jobs: Pick<Job, 'attempt' | 'requeues' | 'exhausted'>[] = [];
  await log.work.take('agent.mine', { slots: 8, signal: stop.signal }, async ({ attempt, requeues, exhausted }) => {
    jobs.push({ attempt, requeues, exhausted });
    if (jobs.length < 3) throw new Error('failed');
    stop.abort();
  });
  assert.deepEqual(jobs, [
    { attempt: 1, requeues: 0, exhausted: false },
    { attempt: 2 + LOST, requeues: LOST, exhausted: false },
    { attempt: 3 + LOST, requeues: LOST, exhausted: true },
  ]);
});
