import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { ANSWERED_REQUEST_MS_MAX } from '../../packages/a2a-grpc/src/call-bounds.ts';
import { CallFailed } from '../../packages/a2a-grpc/src/grpc-client.test-kit.ts';
import {
  callFields,
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  getTaskBytes,
  headerBlock,
  RawConnection,
} from '../../packages/a2a-grpc/src/raw-http2.test-kit.ts';
import { openRig, type Rig } from '../../packages/a2a-grpc/src/rig.test-kit.ts';
import { until } from '../kit/until.ts';

/** Tolerated delay of a bound on a busy machine. */
const PATIENCE_MS = 10_000;

const head = (stream: number, flags = END_HEADERS, more = {}) =>
  frame(FRAME.headers, flags, stream, headerBlock(callFields('GetTask', more)));
const data = (stream: number, bytes: Uint8Array, flags = 0) => frame(FRAME.data, flags, stream, bytes);
const reset = (stream: number) => frame(FRAME.reset, 0, stream, Buffer.of(0, 0, 0, 8));
/** A message shorter than its length prefix. */
const half = (bytes: number) => {
  const begun = Buffer.alloc(bytes);
  begun.writeUInt32BE(1_000_000, 1);
  return begun;
};

/** Asserts that the server still answers other clients. */
async function answers(rig: Rig): Promise<void> {
  const failure = await rig
    .client()
    .call('GetTask', { id: 'unknown' })
    .catch(thrown => thrown);
  assert.ok(failure instanceof CallFailed);
  assert.equal(failure.code, 5);
}

const since = (startedAt: number) => performance.now() - startedAt;

test('an incomplete request is answered at its deadline, and its stream closed shortly after', async t => {
  const requestMsMax = 500;
  const rig = await openRig(t, { limits: { requestMsMax } });
  const raw = new RawConnection(t, rig.port);
  const startedAt = performance.now();
  const whole = getTaskBytes('x');
  raw.send(head(1), head(3), data(3, half(20)), head(5), data(5, whole));
  await until(() => [1, 3, 5].every(stream => raw.of(FRAME.headers, stream).length === 1));
  assert.ok(since(startedAt) >= requestMsMax - 10, `answered after ${since(startedAt)} ms`);
  assert.deepEqual(raw.of(FRAME.reset), []);
  await until(() => raw.of(FRAME.reset).length === 3);
  assert.ok(since(startedAt) >= requestMsMax + ANSWERED_REQUEST_MS_MAX - 20, `closed after ${since(startedAt)} ms`);
  for (const { payload } of raw.of(FRAME.reset)) assert.equal(payload.readUInt32BE(0), 0);
  await answers(rig);
});

test('a request refused before its end does not keep its stream', async t => {
  const rig = await openRig(t, { limits: { bodyBytesMax: 1_000 } });
  const raw = new RawConnection(t, rig.port);
  const whole = getTaskBytes('x');
  raw.send(head(1), data(1, half(20)), head(3), data(3, Buffer.concat([whole, whole])));
  raw.send(head(5, END_HEADERS, { 'content-type': 'text/plain' }), head(7, END_HEADERS, { ':path': '/nothing/There' }));
  await until(() => raw.of(FRAME.headers).length === 4);
  await until(() => raw.of(FRAME.reset).length === 4);
  assert.equal(raw.goAway, undefined);
});

test('an unfinished header block is cut with its connection when a ping is not answered in time', async t => {
  const [heartbeatMs, pingMsMax] = [300, 1_000];
  const rig = await openRig(t, { limits: { heartbeatMs }, grpc: { limits: { pingMsMax } } });
  const startedAt = performance.now();
  const [silent, unended, trickling] = [false, true, true].map(
    preface => new RawConnection(t, rig.port, { silent: true, preface }),
  ) as [RawConnection, RawConnection, RawConnection];
  unended.send(head(1, 0));
  trickling.send(head(1, 0).subarray(0, 40));
  const trickle = setInterval(() => trickling.send(Buffer.of(0)), 50);
  t.after(() => clearInterval(trickle));
  await answers(rig);
  await Promise.all([silent, unended, trickling].map(one => one.closed));
  const ms = since(startedAt);
  assert.ok(ms >= heartbeatMs + pingMsMax - 50 && ms < heartbeatMs + pingMsMax + PATIENCE_MS, `cut after ${ms} ms`);
});

/** A limit of nghttp2, the HTTP/2 library of Node. */
const NGHTTP2 = { continuationFrames: 8, resetsBurst: 1_000, answersWaiting: 1_000 };
/** A limit of Node: `maxHeaderListPairs`. */
const HEADER_FIELDS_MAX = 128;

/** Whether a connection survives frames sent at once. The responses to all of `answered` must arrive before the check. */
async function survives(
  t: TestContext,
  rig: Rig,
  bytes: readonly Uint8Array[],
  answered?: { type: number; count: number },
): Promise<boolean> {
  const raw = new RawConnection(t, rig.port);
  await until(() => raw.of(FRAME.settings).length === 2);
  raw.send(...bytes);
  const before = answered ? () => raw.of(answered.type).length >= answered.count : () => true;
  await until(() => raw.socket.destroyed || before());
  const probe = Buffer.from('probe...');
  raw.send(frame(FRAME.ping, 0, 0, probe));
  await until(() => raw.socket.destroyed || raw.of(FRAME.ping).some(({ payload }) => payload.equals(probe)));
  return !raw.socket.destroyed && raw.goAway === undefined;
}

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index));

test('CVE-2024-28182 CONTINUATION frames up to the limit of a header block pass, one more cuts the connection', async t => {
  const rig = await openRig(t);
  const block = (frames: number) => [
    head(1, END_STREAM),
    ...times(frames, n => frame(FRAME.continuation, n === frames - 1 ? END_HEADERS : 0, 1, headerBlock({ [`x-${n}`]: 'y' }))),
  ];
  assert.equal(await survives(t, rig, block(NGHTTP2.continuationFrames)), true);
  assert.equal(await survives(t, rig, block(NGHTTP2.continuationFrames + 1)), false);
  await answers(rig);
});

test('header fields up to the limit pass, one more resets the stream', async t => {
  const rig = await openRig(t);
  const raw = new RawConnection(t, rig.port);
  const ofClient = Object.keys(callFields('GetTask')).length;
  const fields = (count: number) => Object.fromEntries(times(count - ofClient, n => [`x-${n}`, 'y']));
  const bytes = getTaskBytes('x');
  raw.send(head(1, END_HEADERS, fields(HEADER_FIELDS_MAX)), data(1, bytes, END_STREAM));
  raw.send(head(3, END_HEADERS, fields(HEADER_FIELDS_MAX + 1)));
  await until(() => raw.of(FRAME.headers, 1).length === 1 && raw.of(FRAME.reset, 3).length === 1);
  assert.equal(raw.of(FRAME.reset, 1).length, 0);
});

test('CVE-2023-44487: resets up to the burst limit are accepted; more of them cut the connection without affecting others', async t => {
  const rig = await openRig(t);
  const resets = (count: number) =>
    times(count, n => [head(2 * n + 1), data(2 * n + 1, getTaskBytes('x'), END_STREAM), reset(2 * n + 1)]).flat();
  assert.equal(await survives(t, rig, resets(NGHTTP2.resetsBurst)), true);
  // 33 are restored per second.
  assert.equal(await survives(t, rig, resets(NGHTTP2.resetsBurst * 2)), false);
  await answers(rig);
  assert.equal(rig.open(), 0);
});

test('CVE-2019-9512 CVE-2019-9515 unanswered pings or settings up to the limit pass, one more cuts the connection', async t => {
  const rig = await openRig(t);
  for (const one of [frame(FRAME.ping, 0, 0, Buffer.alloc(8)), frame(FRAME.settings, 0, 0)]) {
    assert.equal(
      await survives(
        t,
        rig,
        times(NGHTTP2.answersWaiting, () => one),
      ),
      true,
    );
    assert.equal(
      await survives(
        t,
        rig,
        times(NGHTTP2.answersWaiting + 1, () => one),
      ),
      false,
    );
  }
  await answers(rig);
});

test('CVE-2025-8671 frames that make the server reset its streams cut the connection', async t => {
  const rig = await openRig(t);
  for (const increment of [0, 0x7f_ff_ff_ff]) {
    const raw = new RawConnection(t, rig.port);
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(increment, 0);
    for (let n = 0; n < 2_000 && !raw.socket.destroyed; n += 1) {
      raw.send(head(2 * n + 1), frame(FRAME.window, 0, 2 * n + 1, payload));
      await sleep(0);
    }
    await raw.closed;
  }
  await answers(rig);
});

test('request bytes up to the limit of a connection pass, one more refuses a call; ended calls make room', async t => {
  const rig = await openRig(t, {
    limits: { requestMsMax: 60_000 },
    grpc: { limits: { connectionMegabytesMax: 1, closeMsMax: 100 } },
  });
  const raw = new RawConnection(t, rig.port);
  const other = new RawConnection(t, rig.port);
  const streams = times(100, n => 2 * n + 1);
  for (const stream of streams) raw.send(head(stream), data(stream, half(10_000)));
  other.send(head(1), data(1, half(10_000)));
  await answers(rig);
  // The window of the connection reopens by the bytes read.
  await until(() => raw.of(FRAME.window, 0).reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0) > 1_000_000 - 65_535);
  assert.deepEqual(raw.of(FRAME.headers), [], 'a million bytes are held');
  raw.send(head(201), data(201, Buffer.of(0)));
  await until(() => raw.of(FRAME.headers).length > 0);
  assert.deepEqual(
    raw.of(FRAME.headers).map(({ stream }) => stream),
    [201],
  );
  raw.send(reset(1));
  raw.send(head(203), data(203, getTaskBytes('x'), END_STREAM));
  await until(() => raw.of(FRAME.headers, 203).length > 0);
  assert.deepEqual([raw.goAway, other.of(FRAME.headers)], [undefined, []]);
});

test('a compressed request counts with its decompressed size', async t => {
  const rig = await openRig(t, {
    limits: { requestMsMax: 60_000 },
    grpc: { limits: { connectionMegabytesMax: 1, closeMsMax: 100 } },
  });
  const raw = new RawConnection(t, rig.port);
  const packed = gzipSync(Buffer.alloc(600_000));
  const prefix = Buffer.alloc(5, 1);
  prefix.writeUInt32BE(packed.length, 1);
  for (const stream of [1, 3]) {
    raw.send(head(stream, END_HEADERS, { 'grpc-encoding': 'gzip' }), data(stream, Buffer.concat([prefix, packed])));
    await answers(rig);
  }
  await until(() => raw.of(FRAME.headers).length > 0);
  assert.equal(raw.of(FRAME.headers).length, 1);
});

/** A connection whose streams may send nothing: SETTINGS_INITIAL_WINDOW_SIZE is 0. */
function deaf(t: TestContext, rig: Rig): RawConnection {
  const raw = new RawConnection(t, rig.port);
  raw.send(frame(FRAME.settings, 0, 0, Buffer.of(0, 4, 0, 0, 0, 0)));
  return raw;
}

test('a response that its client does not read is dropped in time, even a small one despite pings', async t => {
  const viewerStallMsMax = 700;
  const rig = await openRig(t, { limits: { viewerStallMsMax, heartbeatMs: 100 } });
  const { task } = await rig.client().call('SendMessage', {
    message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] },
    configuration: { returnImmediately: true },
  });
  const raw = deaf(t, rig);
  const startedAt = performance.now();
  raw.send(head(1), data(1, getTaskBytes(task.id), END_STREAM));
  await rig.relay.openArtifact(task.id, 'l');
  await rig.relay.text(task.id, 'l', 'x'.repeat(300_000));
  raw.send(head(3), data(3, getTaskBytes(task.id), END_STREAM));
  await until(() => [1, 3].every(stream => raw.of(FRAME.reset, stream).length === 1));
  assert.ok(since(startedAt) >= viewerStallMsMax - 20, `dropped after ${since(startedAt)} ms`);
  assert.deepEqual(raw.of(FRAME.data), []);
  for (const { payload } of raw.of(FRAME.reset)) assert.equal(payload.readUInt32BE(0), 8);
  await answers(rig);
});

test('a client that keeps an idle connection half open loses its slot', async t => {
  const [idleConnectionMs, closeMsMax] = [300, 300];
  const rig = await openRig(t, { limits: { connectionsMax: 1 }, grpc: { limits: { idleConnectionMs, closeMsMax } } });
  const raw = new RawConnection(t, rig.port);
  raw.socket.allowHalfOpen = true;
  await new Promise(resolve => raw.socket.once('end', resolve));
  assert.equal(raw.socket.destroyed, false);
  const accepted = async () => {
    const next = connect(rig.port, '127.0.0.1').on('error', () => {});
    t.after(() => next.destroy());
    return await Promise.race([
      new Promise(resolve => next.once('data', () => resolve(true))),
      new Promise(resolve => next.once('close', () => resolve(false))),
    ]);
  };
  const late = performance.now() + PATIENCE_MS;
  while (!(await accepted())) {
    assert.ok(performance.now() < late, 'the slot is taken');
    await sleep(20);
  }
});
