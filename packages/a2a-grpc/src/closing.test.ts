import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { until } from '../../../test/kit/until.ts';
import { CallFailed, userMessage } from './grpc-client.test-kit.ts';
import { GRPC_LIMITS } from './limits.ts';
import { callFields, END_HEADERS, FRAME, frame, headerBlock, RawConnection } from './raw-http2.test-kit.ts';
import { openRig, type Rig } from './rig.test-kit.ts';

const PATIENCE_MS = 10_000;
const CLOSE_MS_MAX = 1_000;

async function closed(rig: Rig): Promise<number> {
  const startedAt = performance.now();
  await rig.server.close();
  return performance.now() - startedAt;
}

/** A log that responds late. */
function delayReads(rig: Rig, ms: number): { reads: number } {
  const counted = { reads: 0 };
  const { facts } = rig.log;
  const last = facts.last.bind(facts);
  facts.last = async (...args) => {
    counted.reads += 1;
    await sleep(ms);
    return last(...args);
  };
  return counted;
}

test('closing answers calls in progress, drains streams and accepts no new calls', async t => {
  const first = await openRig(t);
  const { task } = await first
    .client()
    .call('SendMessage', { message: userMessage('x'), configuration: { returnImmediately: true } });
  const rig = await first.another();
  const stream = rig.client().stream('SubscribeToTask', { id: task.id });
  await stream.take(1);
  const { task: another } = await first
    .client()
    .call('SendMessage', { message: userMessage('y'), configuration: { returnImmediately: true } });
  const counted = delayReads(rig, 500);
  const client = rig.client();
  const underWay = client.call('GetTask', { id: another.id });
  await until(() => counted.reads === 1);
  const closing = closed(rig);
  assert.equal((await underWay).id, another.id);
  assert.equal((await stream.failure()).code, status.UNAVAILABLE);
  assert.ok((await closing) < GRPC_LIMITS.closeMsMax, 'nothing delays closing any more');
  const refused = await client.call('GetTask', { id: task.id }, { deadline: PATIENCE_MS }).catch(thrown => thrown);
  assert.ok(refused instanceof CallFailed);
  assert.equal(refused.code, status.UNAVAILABLE);
});

const head = (flags: number) => frame(FRAME.headers, flags, 1, headerBlock(callFields('GetTask')));

test('idle connections do not delay closing', async t => {
  const rig = await openRig(t);
  const idle = [new RawConnection(t, rig.port), new RawConnection(t, rig.port, { silent: true })];
  await rig.client().call('ListTasks', {});
  for (const raw of idle) await until(() => raw.frames.length > 0);
  assert.ok((await closed(rig)) < GRPC_LIMITS.closeMsMax);
  await Promise.all(idle.map(raw => raw.closed));
});

test('closing ends at its bound despite partial requests, partial header blocks, silent and lingering clients', async t => {
  const rig = await openRig(t, { grpc: { limits: { closeMsMax: CLOSE_MS_MAX } } });
  const half = new RawConnection(t, rig.port);
  half.send(head(END_HEADERS), frame(FRAME.data, 0, 1, Buffer.of(0, 0, 0, 0, 9, 0x12)));
  const unended = new RawConnection(t, rig.port, { silent: true });
  unended.send(head(0));
  const nothing = new RawConnection(t, rig.port, { silent: true, preface: false });
  const stays = new RawConnection(t, rig.port);
  stays.socket.allowHalfOpen = true;
  await rig.client().call('ListTasks', {});
  const all = [half, unended, nothing, stays];
  for (const raw of all) await until(() => raw.frames.length > 0);
  const ms = await closed(rig);
  assert.ok(ms >= CLOSE_MS_MAX - 20 && ms < CLOSE_MS_MAX + PATIENCE_MS, `closed after ${ms} ms`);
  await Promise.all([half, unended, nothing].map(raw => raw.closed));
});

async function silentClient(t: TestContext, rig: Rig): Promise<{ closed: Promise<unknown> }> {
  const socket = connect(rig.port, '127.0.0.1').on('error', () => {});
  t.after(() => socket.destroy());
  await new Promise(resolve => socket.once('connect', resolve));
  return { closed: new Promise(resolve => socket.once('close', resolve)) };
}

test('a client without a TLS handshake does not delay closing', async t => {
  const tls = { options: { handshakeTimeout: 60_000 }, keepFresh: () => {} };
  const rig = await openRig(t, { grpc: { tls, limits: { closeMsMax: CLOSE_MS_MAX } } });
  const client = await silentClient(t, rig);
  await sleep(50);
  const ms = await closed(rig);
  assert.ok(ms < CLOSE_MS_MAX + PATIENCE_MS, `closed after ${ms} ms`);
  await client.closed;
});
