import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InputRecord } from '@hopline/events';
import { LogUnavailable } from '@hopline/log';
import { INPUTS_STREAM, openJetStreamLog } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const IN_FLIGHT_MAX = 512;
const MIB = 1024 * 1024;
const record = (text: string): InputRecord => {
  const from = { id: 'c', agent: 'a', turn: 1, attempt: 1 };
  return { v: 1, at: 1, from, n: 1, inputs: [{ kind: 'text', lane: 'l', tokens: [text] }] };
};

test('at most 512 publishes wait for their acks; the others wait for those, and all are stored once', async () => {
  const server = await startNats();
  const proxy = await startNatsProxy(server.port);
  const log = await openJetStreamLog({ servers: proxy.url, name: 'window', ackTimeoutMs: 1_000 });
  const nc = await connect({ servers: server.url });
  const jsm = await jetstreamManager(nc);
  proxy.lose = ({ payload }) => payload.toString('latin1', 0, 10) === '{"stream":';
  const says = Array.from({ length: IN_FLIGHT_MAX + 100 }, (_, i) => log.inputs.append('task', record('x'), { id: `task:${i}` }));
  await new Promise(resolve => setTimeout(resolve, 500));
  assert.equal((await jsm.streams.info(INPUTS_STREAM)).state.messages, IN_FLIGHT_MAX);
  proxy.lose = undefined;
  const acks = await Promise.all(says);
  assert.equal(acks.filter(({ duplicate }) => duplicate).length, IN_FLIGHT_MAX);
  assert.equal((await jsm.streams.info(INPUTS_STREAM)).state.messages, IN_FLIGHT_MAX + 100);
  await log.close();
  await nc.close();
  await proxy.close();
  await server.stop();
});

test('while the log is away what waits is bounded in bytes: more fails at once, the rest is stored when it is back', async () => {
  const server = await startNats();
  const log = await openJetStreamLog({ servers: server.url, name: 'away' });
  await server.kill();
  // 4 of these fill the 16 MiB in flight, 16 the 64 MiB that wait.
  const text = 'x'.repeat(4 * MIB - 1_024);
  const says = Array.from({ length: 24 }, (_, i) => log.inputs.append('task', record(text), { id: `task:${i}` }));
  const settled = Promise.allSettled(says);
  const began = Date.now();
  const refused = await Promise.allSettled(says.slice(20));
  assert.ok(Date.now() - began < 1_000);
  for (const say of refused) assert.ok(say.status === 'rejected' && say.reason instanceof LogUnavailable);
  await server.restart();
  const seqs = (await settled).slice(0, 20).map(say => say.status === 'fulfilled' && say.value.seq);
  assert.deepEqual(
    seqs,
    Array.from({ length: 20 }, (_, i) => i + 1),
  );
  await log.close();
  await server.stop();
});

test('a closed log refuses, and what was under way is LogUnavailable', async () => {
  const server = await startNats();
  const log = await openJetStreamLog({ servers: server.url, name: 'closed' });
  await server.kill();
  const under = log.inputs.append('task', record('x'), { id: 'task:1' });
  const closing = log.close();
  await assert.rejects(under, LogUnavailable);
  await closing;
  await assert.rejects(log.inputs.append('task', record('x'), { id: 'task:2' }), LogUnavailable);
  await server.stop();
});
