import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type InputRecord, RAW_PREFIX } from '@hopline/events';
import { LogUnavailable } from '@hopline/log';
import { INPUTS_STREAM, openJetStreamLog } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { isPublishAnswer, loseAnswers, startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const IN_FLIGHT_MAX = 512;
const MIB = 1024 * 1024;
/** Size of a publish: 4 of them fill the 16 MiB in flight, and 16 fill the 64 MiB that wait. */
const QUARTER_WINDOW = 'x'.repeat(4 * MIB - 1_024);
const record = (text: string): InputRecord => {
  const from = { id: 'c', agent: 'a', turn: 1, attempt: 1 };
  return { v: 1, at: 1, from, n: 1, inputs: [{ kind: 'text', lane: 'l', tokens: [text] }] };
};

test('at most 512 publishes are in flight; the others wait, and all are stored once', { timeout: 120_000 }, async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const proxy = await startNatsProxy(server.port);
  t.after(() => proxy.close());
  const log = await openJetStreamLog({ servers: proxy.url, name: 'window', ackTimeoutMs: 1_000 });
  t.after(() => log.close());
  const nc = await connect({ servers: server.url });
  t.after(() => nc.close());
  const jsm = await jetstreamManager(nc);
  proxy.lose = isPublishAnswer;
  const appends = Array.from({ length: IN_FLIGHT_MAX + 100 }, (_, i) =>
    log.inputs.append('task', record('x'), { id: `task:${i}` }),
  );
  const stored = async () => (await jsm.streams.info(INPUTS_STREAM)).state.messages;
  await until(async () => (await stored()) >= IN_FLIGHT_MAX);
  await new Promise(resolve => setTimeout(resolve, 500));
  assert.equal(await stored(), IN_FLIGHT_MAX);
  proxy.lose = undefined;
  const acks = await Promise.all(appends);
  assert.equal(acks.filter(({ duplicate }) => duplicate).length, IN_FLIGHT_MAX);
  assert.equal(await stored(), IN_FLIGHT_MAX + 100);
});

test('waiting publishes are bounded in bytes: beyond the bound they reject at once, the others are stored after a restart', async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const log = await openJetStreamLog({ servers: server.url, name: 'away' });
  t.after(() => log.close());
  await server.kill();
  const appends = Array.from({ length: 24 }, (_, i) => log.inputs.append('task', record(QUARTER_WINDOW), { id: `task:${i}` }));
  const settled = Promise.allSettled(appends);
  // These fail at once; the others wait until the restart below.
  const refused = await Promise.allSettled(appends.slice(20));
  for (const result of refused) assert.ok(result.status === 'rejected' && result.reason instanceof LogUnavailable);
  await server.restart();
  const seqs = (await settled).slice(0, 20).map(result => result.status === 'fulfilled' && result.value.seq);
  assert.deepEqual(
    seqs,
    Array.from({ length: 20 }, (_, i) => i + 1),
  );
});

test('records of writers wait for room in the buffer, in their order, and all are stored when nats-server is back', async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const log = await openJetStreamLog({ servers: server.url, name: 'away' });
  t.after(() => log.close());
  await server.kill();
  const ids = Array.from({ length: 24 }, (_, index) => `task:${index}`);
  const appends = ids.map(id => log.inputs.append('task', record(QUARTER_WINDOW), { id, waitsForRoom: true }));
  const late = log.inputs.append('task', record('x'), { id: 'late', waitsForRoom: true, timeoutMs: 100 });
  await assert.rejects(late, /not sent in time: the publish buffer is full/);
  await assert.rejects(log.inputs.append('task', record(QUARTER_WINDOW), { id: 'client' }), /the publish buffer is full/);
  await server.restart();
  assert.deepEqual(
    (await Promise.all(appends)).map(({ seq }) => seq),
    ids.map((_, index) => index + 1),
  );
});

test('a publish in flight is sent again as soon as the connection is back', { timeout: 120_000 }, async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const proxy = await startNatsProxy(server.port);
  t.after(() => proxy.close());
  // The ack timeout exceeds the time limit of a publish, so that only the reconnect can cause a repetition.
  const log = await openJetStreamLog({ servers: proxy.url, name: 'back', ackTimeoutMs: 60_000 });
  t.after(() => log.close());
  const lost = loseAnswers(proxy);
  const append = log.inputs.append('task', record('x'), { id: 'task:1' });
  await lost;
  proxy.lose = undefined;
  proxy.cut();
  proxy.mend();
  assert.deepEqual(await append, { seq: 1, duplicate: true });
});

test('at most 16 MiB of publishes are in flight, even after earlier ones were answered', { timeout: 120_000 }, async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const proxy = await startNatsProxy(server.port);
  t.after(() => proxy.close());
  const log = await openJetStreamLog({ servers: proxy.url, name: 'bytes', ackTimeoutMs: 1_000 });
  t.after(() => log.close());
  const nc = await connect({ servers: server.url });
  t.after(() => nc.close());
  const jsm = await jetstreamManager(nc);
  const stored = async () => (await jsm.streams.info(INPUTS_STREAM)).state.messages;
  const append = (id: string) => log.inputs.append('task', record(QUARTER_WINDOW), { id });
  for (const id of ['a', 'b', 'c', 'd']) await append(id);
  proxy.lose = isPublishAnswer;
  const appends = ['e', 'f', 'g', 'h', 'i', 'j'].map(append);
  await until(async () => (await stored()) >= 8);
  await new Promise(resolve => setTimeout(resolve, 500));
  assert.equal(await stored(), 8);
  proxy.lose = undefined;
  await Promise.all(appends);
  assert.equal(await stored(), 10);
});

test('a publish that waits longer than its time limit rejects, and makes room for others', { timeout: 120_000 }, async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const log = await openJetStreamLog({ servers: server.url, name: 'late' });
  t.after(() => log.close());
  await server.kill();
  const append = (id: string, timeoutMs?: number) =>
    log.inputs.append('task', record(QUARTER_WINDOW), { id, ...(timeoutMs !== undefined && { timeoutMs }) });
  for (let round = 1; round <= 2; round += 1) {
    const late = await Promise.allSettled(Array.from({ length: 20 }, (_, i) => append(`late:${round}:${i}`, 300)));
    for (const result of late) {
      assert.ok(result.status === 'rejected' && result.reason instanceof LogUnavailable);
      assert.match(result.reason.message, /in time/);
    }
  }
  const appends = Array.from({ length: 20 }, (_, i) => append(`task:${i}`));
  await server.restart();
  assert.equal((await Promise.all(appends)).length, 20);
});

test('a closed log rejects new publishes, those in flight and waiting ones with LogUnavailable', {
  timeout: 120_000,
}, async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const log = await openJetStreamLog({ servers: server.url, name: 'closed' });
  t.after(() => log.close());
  await server.kill();
  const appends = Array.from({ length: 6 }, (_, i) => log.inputs.append('task', record(QUARTER_WINDOW), { id: `task:${i}` }));
  const settled = Promise.allSettled(appends);
  await log.close();
  for (const result of await settled) assert.ok(result.status === 'rejected' && result.reason instanceof LogUnavailable);
  await assert.rejects(log.inputs.append('task', record('x'), { id: 'task:late' }), LogUnavailable);
});

for (const [change, stepMs] of [
  ['back', -3_600_000],
  ['forward', 3_600_000],
] as const) {
  test(`a publish without an answer is sent again in time even if the clock is set ${change} by an hour`, async t => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
    const server = await startNats();
    t.after(() => server.stop());
    const proxy = await startNatsProxy(server.port);
    t.after(() => proxy.close());
    const log = await openJetStreamLog({ servers: proxy.url, name: 'clock', ackTimeoutMs: 250 });
    t.after(() => log.close());
    const lost = loseAnswers(proxy);
    const append = log.inputs.append('task', record('x'), { id: 'task:1' });
    await lost;
    t.mock.timers.setTime(Date.now() + stepMs);
    proxy.lose = undefined;
    const late = new Promise<never>((_, reject) => setTimeout(reject, 60_000, new Error('not sent again in 60 s')).unref());
    assert.deepEqual(await Promise.race([append, late]), { seq: 1, duplicate: true });
  });
}

test('publishes that the server has not read yet are not sent again, however long it stands still', {
  timeout: 120_000,
}, async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const proxy = await startNatsProxy(server.port);
  t.after(() => proxy.close());
  // If the machine delays the answers by that much, each publish is sent once more.
  const ackTimeoutMs = 500;
  const log = await openJetStreamLog({ servers: proxy.url, name: 'late', ackTimeoutMs });
  t.after(() => log.close());
  const nc = await connect({ servers: server.url });
  t.after(() => nc.close());
  let received = 0;
  nc.subscribe(`${RAW_PREFIX}.>`, {
    callback: () => {
      received += 1;
    },
  });
  await nc.flush();
  proxy.freeze();
  const appends = Array.from({ length: 5 }, (_, n) => log.inputs.append('task', record('x'), { id: `task:${n}` }));
  await new Promise(resolve => setTimeout(resolve, 15 * ackTimeoutMs));
  proxy.thaw();
  await Promise.all(appends);
  await nc.flush();
  // The answer to the PING may arrive before those to the publishes, which are then sent a second time.
  assert.ok(received >= 5 && received <= 10, `the server received 5 publishes ${received} times`);
});
