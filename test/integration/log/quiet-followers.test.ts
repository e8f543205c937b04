import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FactRecord, LIVE_PREFIX, LOG_PREFIX } from '@hopline/events';
import { type Log, PUSH_AFTER_CHECKS } from '@hopline/log';
import { factRecord } from '@hopline/log/test-kit';
import { FACTS_STREAM, type LogEvent, openJetStreamLog, WATCHED_SUBJECTS_MAX } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const TAIL_CHECK_MS = 200;
/** Some heartbeats of the server, and many checks of the tail. */
const WINDOW_MS = 3_000;
const SETTLED_MS_MAX = 90_000;
const settled = (met: () => boolean | Promise<boolean>, what: string) => until(met, what, SETTLED_MS_MAX);

/** The user `follower` may do everything except create a consumer with a list of subjects. */
const WITHOUT_WATCH = `
no_auth_user: other
authorization { users: [
  { user: other, password: x }
  { user: follower, password: x, permissions: { publish: { deny: ["$JS.API.CONSUMER.CREATE.${FACTS_STREAM}.*"] } } }
] }`;

const WITH_WATCH = WITHOUT_WATCH.replace('CONSUMER.CREATE', 'NOTHING');

/** A log behind a proxy that can lose live messages, and a connection that sees every request to JetStream. */
async function open(t: { after(end: () => Promise<unknown>): void }, config?: string) {
  const nats = await startNats(config === undefined ? {} : { config });
  const proxy = await startNatsProxy(nats.port);
  const user = config === undefined ? {} : { credentials: { user: 'follower', pass: 'x' } };
  const events: LogEvent[] = [];
  const onEvent = (event: LogEvent) => void events.push(event);
  const follow = { tailCheckMs: TAIL_CHECK_MS };
  const log = await openJetStreamLog({ servers: proxy.url, name: 'quiet', follow, onEvent, ...user });
  const writer = await openJetStreamLog({ servers: nats.url, name: 'writer' });
  const nc = await connect({ servers: nats.url });
  const requests: string[] = [];
  nc.subscribe('$JS.API.>', { callback: (_error, { subject }) => void requests.push(subject) });
  await nc.flush();
  const jsm = await jetstreamManager(nc);
  const state = { losesLive: false };
  proxy.lose = ({ subject }) => state.losesLive && subject.startsWith(`${LIVE_PREFIX}.`);
  t.after(async () => {
    await log.close();
    await writer.close();
    await nc.close();
    await proxy.close();
    await nats.stop();
  });
  return { log, writer, requests, jsm, state, proxy, nats, events };
}

/** Appends the first record of each task, and follows it. */
async function followAll(log: Log, writer: Log, count: number, signal: AbortSignal) {
  const tasks = Array.from({ length: count }, (_, index) => `quiet-${index}`);
  const got = new Map<string, number[]>(tasks.map(taskId => [taskId, []]));
  const seqs = new Map<string, number>();
  const ended: Promise<void>[] = [];
  for (const taskId of tasks) {
    const { seq } = await writer.facts.append(factRecord(taskId, 1, 0), { expected: 0, id: `${taskId}:w:1` });
    seqs.set(taskId, seq);
    const records = await log.facts.follow(taskId, 0, signal);
    const collect = async () => {
      for await (const { record } of records) got.get(taskId)!.push(record.aggregate.generation);
    };
    ended.push(collect());
  }
  return { tasks, got, seqs, ended: Promise.all(ended) };
}

const next = (taskId: string, startSeq: number): FactRecord => factRecord(taskId, 2, startSeq);

/** Resolves when a window of WINDOW_MS has no request. On a busy machine the beginning may be late, or a heartbeat may be lost. */
async function withoutRequests(requests: string[]): Promise<void> {
  for (const end = Date.now() + SETTLED_MS_MAX; ; ) {
    const before = requests.length;
    await new Promise(resolve => setTimeout(resolve, WINDOW_MS));
    if (requests.length === before) return;
    assert.ok(Date.now() < end, `${requests.length - before} requests in ${WINDOW_MS} ms, the last one ${requests.at(-1)}`);
  }
}

test('followers of quiet tasks send NATS no requests, but still find a lost last live message', {
  timeout: 300_000,
}, async t => {
  const { log, writer, requests, jsm, state } = await open(t);
  const stop = new AbortController();
  const count = WATCHED_SUBJECTS_MAX + 10;
  const { tasks, got, seqs, ended } = await followAll(log, writer, count, stop.signal);
  await withoutRequests(requests);
  assert.equal((await jsm.streams.info(FACTS_STREAM)).state.consumer_count, 2);

  state.losesLive = true;
  const chosen = [tasks[0]!, tasks.at(-1)!];
  for (const taskId of chosen) {
    const seq = seqs.get(taskId)!;
    await writer.facts.append(next(taskId, seq), { expected: seq, id: `${taskId}:w:2` });
  }
  await settled(() => chosen.every(taskId => got.get(taskId)!.length === 2), 'the lost records are found');
  assert.deepEqual(
    chosen.map(taskId => got.get(taskId)),
    [
      [1, 2],
      [1, 2],
    ],
  );

  stop.abort();
  await ended;
  await settled(async () => (await jsm.streams.info(FACTS_STREAM)).state.consumer_count === 0, 'no consumer is left behind');
});

test('when the watch and live messages are lost together, the watch is replaced and every follower is checked', {
  timeout: 300_000,
}, async t => {
  const { log, writer, requests, jsm, state } = await open(t);
  const stop = new AbortController();
  const { tasks, got, seqs, ended } = await followAll(log, writer, 5, stop.signal);
  await withoutRequests(requests);
  const consumers = async () => (await jsm.consumers.list(FACTS_STREAM).next()).map(({ name }) => name);
  const [first] = await consumers();

  state.losesLive = true;
  await jsm.consumers.delete(FACTS_STREAM, first!);
  for (const taskId of tasks) {
    const seq = seqs.get(taskId)!;
    await writer.facts.append(next(taskId, seq), { expected: seq, id: `${taskId}:w:2` });
  }
  await settled(() => tasks.every(taskId => got.get(taskId)!.length === 2), 'the lost records are found');
  await withoutRequests(requests);
  const [second] = await consumers();
  assert.notEqual(second, undefined);
  assert.notEqual(second, first);
  stop.abort();
  await ended;
});

for (const [what, losesHeartbeats] of [
  ['its heartbeats name it', false],
  ['its heartbeats are missing', true],
] as const) {
  test(`a record that neither a live message nor the watch delivers is found if ${what}`, { timeout: 300_000 }, async t => {
    const { log, writer, requests, proxy } = await open(t);
    const stop = new AbortController();
    const { tasks, got, seqs, ended } = await followAll(log, writer, 2, stop.signal);
    await withoutRequests(requests);
    // The end of an answer to a direct get has no payload either.
    const isHeartbeat = ({ subject, header }: { subject: string; header: string }) =>
      subject.startsWith('_INBOX.') && header.startsWith('NATS/1.0 100');
    proxy.lose = frame =>
      [LIVE_PREFIX, LOG_PREFIX].some(prefix => frame.subject.startsWith(`${prefix}.`)) || (losesHeartbeats && isHeartbeat(frame));
    const seq = seqs.get(tasks[0]!)!;
    await writer.facts.append(next(tasks[0]!, seq), { expected: seq, id: 'w:2' });
    await settled(() => got.get(tasks[0]!)!.length === 2, 'the lost record is found');
    stop.abort();
    await ended;
  });
}

test('without the permission to watch, as in an older configuration of NATS, followers check their tails', {
  timeout: 120_000,
}, async t => {
  const { log, writer, requests, state } = await open(t, WITHOUT_WATCH);
  const stop = new AbortController();
  const { tasks, got, seqs, ended } = await followAll(log, writer, 2, stop.signal);
  const checks = () => requests.filter(subject => subject.startsWith('$JS.API.DIRECT.GET.')).length;
  await settled(() => checks() > 4 * PUSH_AFTER_CHECKS * tasks.length, 'the tails are checked');
  state.losesLive = true;
  const seq = seqs.get(tasks[0]!)!;
  await writer.facts.append(next(tasks[0]!, seq), { expected: seq, id: 'w:2' });
  await settled(() => got.get(tasks[0]!)!.length === 2, 'the lost record is found');
  assert.deepEqual(
    requests.filter(subject => subject.startsWith(`$JS.API.CONSUMER.CREATE.${FACTS_STREAM}`)),
    [],
  );
  stop.abort();
  await ended;
});

test('followers whose watch is lost and no longer permitted check their tails', { timeout: 300_000 }, async t => {
  const { log, writer, requests, jsm, state, nats, events } = await open(t, WITH_WATCH);
  const stop = new AbortController();
  const { tasks, got, seqs, ended } = await followAll(log, writer, 2, stop.signal);
  await withoutRequests(requests);
  const [{ name } = assert.fail('nothing is watched')] = await jsm.consumers.list(FACTS_STREAM).next();
  await nats.reload(WITHOUT_WATCH);
  await settled(async () => {
    await jsm.consumers.delete(FACTS_STREAM, name).catch(() => {});
    return events.some(({ type }) => type === 'denied');
  }, 'the watch is denied');
  state.losesLive = true;
  const seq = seqs.get(tasks[0]!)!;
  await writer.facts.append(next(tasks[0]!, seq), { expected: seq, id: 'w:2' });
  await settled(() => got.get(tasks[0]!)!.length === 2, 'the lost record is found');
  stop.abort();
  await ended;
});

test('the permission to watch is tried again after a reconnect, and one to two minutes after it was denied', {
  timeout: 300_000,
}, async t => {
  const clock = performance.now.bind(performance);
  let aheadMs = 0;
  t.mock.method(performance, 'now', () => clock() + aheadMs);
  const { log, writer, requests, jsm, proxy, nats, events } = await open(t, WITHOUT_WATCH);
  const count = (type: LogEvent['type']) => events.filter(event => event.type === type).length;
  const consumers = async () => (await jsm.streams.info(FACTS_STREAM)).state.consumer_count;
  const stop = new AbortController();
  const { ended } = await followAll(log, writer, 2, stop.signal);
  await settled(() => count('denied') === 1, 'the watch is denied');
  proxy.cut();
  proxy.mend();
  await settled(() => count('denied') === 2, 'the second try, after the reconnect');
  const deniedAtMs = clock();

  aheadMs = 30_000;
  await new Promise(resolve => setTimeout(resolve, WINDOW_MS));
  assert.equal(count('denied'), 2, 'tried again too soon');
  assert.ok(performance.now() - deniedAtMs < 60_000, 'a minute has passed: the test proves nothing');
  await nats.reload(WITH_WATCH);

  aheadMs = 120_000;
  await settled(async () => (await consumers()) === 1, 'the third try, after two minutes');
  await withoutRequests(requests);
  assert.deepEqual([count('denied'), count('disconnected')], [2, 1]);
  stop.abort();
  await ended;
});
