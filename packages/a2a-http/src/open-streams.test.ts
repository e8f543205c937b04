import assert from 'node:assert/strict';
import { get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LogFull } from '@hopline/log';
import { until } from '../../../test/kit/until.ts';
import { call, open, openRig, post, type Rig, sendParams, shape, userMessage } from './http-server.test-kit.ts';
import { CLOSE_MS_MAX } from './register-a2a.ts';

async function started(rig: Rig): Promise<string> {
  const { result } = await call(rig, 'send', sendParams(userMessage('x'), '1.0', { blocking: false }));
  return result.task.id;
}

/** A client that sends a request and then reads nothing. */
function deafClient(rig: Rig, taskId: string, t: { after(fn: () => void): void }): Promise<Socket> {
  const { hostname, port } = new URL(rig.url);
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: taskId } });
  const { promise, resolve } = Promise.withResolvers<Socket>();
  const socket = connect(Number(port), hostname, () => {
    socket.pause();
    socket.write(
      `POST / HTTP/1.1\r\nhost: x\r\na2a-version: 1.0\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      () => resolve(socket),
    );
  });
  socket.on('error', () => {});
  t.after(() => socket.destroy());
  return promise;
}

test('streams up to the limit are accepted, one more gets 503 with Retry-After; a released slot is free', async t => {
  const rig = await openRig(t, { limits: { streamsMax: 2 } });
  const taskId = await started(rig);
  const streams = [await open(rig, 'subscribe', { id: taskId }), await open(rig, 'subscribe', { id: taskId })];
  const refused = await post(rig, 'subscribe', { id: taskId });
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  assert.equal(((await refused.json()) as { error: { data: { reason: string }[] } }).error.data[0]?.reason, 'UNAVAILABLE');
  assert.equal((await post(rig, 'stream', sendParams(userMessage('x')))).status, 503);
  assert.equal((await call(rig, 'get', { id: taskId })).result.id, taskId, 'reading needs no place');
  await streams[0]!.cut();
  await until(() => rig.open() === 1);
  const next = await open(rig, 'subscribe', { id: taskId });
  await next.take(1);
  assert.equal(
    (await call(rig, 'cancel', { id: taskId })).result.status.state,
    'TASK_STATE_CANCELED',
    'a cancel needs no stream',
  );
});

test('connections up to the limit are accepted, one more is dropped without affecting the others', async t => {
  const rig = await openRig(t, { limits: { connectionsMax: 1 } });
  const begun = Promise.withResolvers<string>();
  rig.relay.onClient = taskId => begun.resolve(taskId);
  const stream = await open(rig, 'stream', sendParams(userMessage('x')));
  const taskId = await begun.promise;
  await assert.rejects(
    new Promise((resolve, reject) => {
      get(`${rig.url}/.well-known/agent.json`, resolve).on('error', reject);
    }),
    { code: 'ECONNRESET' },
  );
  await rig.relay.end(taskId);
  assert.deepEqual(shape(await stream.rest()), ['task submitted', 'working', 'completed']);
});

test('however a stream or a wait ends, no slot, feed or listener remains [S0-37]', async t => {
  const rig = await openRig(t, { limits: { feedLingerMs: 20 } });
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['a']);
  await (await open(rig, 'stream', sendParams(userMessage('x')))).rest();
  await call(rig, 'send', sendParams(userMessage('x')));
  rig.relay.onClient = () => {};
  const taskId = await started(rig);
  const cut = await open(rig, 'stream', sendParams(userMessage('x')));
  await cut.take(1);
  await cut.cut();
  const leaving = new AbortController();
  const waiting = post(rig, 'send', sendParams(userMessage('x')), { signal: leaving.signal });
  await until(() => rig.open() > 0);
  leaving.abort();
  await assert.rejects(waiting, { name: 'AbortError' });
  await call(rig, 'subscribe', { id: 'unknown' });
  await call(rig, 'subscribe', { id: taskId }, { query: '?cursor=9.9' });
  await call(rig, 'send', sendParams(userMessage('x', { taskId: 'unknown' })));
  await call(rig, 'send', sendParams(userMessage('x', { taskId, contextId: 'another' })));
  const { requireRoom } = rig.log.work;
  rig.log.work.requireRoom = async () => {
    throw new LogFull('no room');
  };
  await call(rig, 'send', sendParams(userMessage('x', { taskId })));
  await post(rig, 'stream', sendParams(userMessage('x', { taskId })));
  rig.log.work.requireRoom = requireRoom;
  rig.log.faults.refusals = 1;
  await (await open(rig, 'stream', sendParams(userMessage('x')))).rest();
  await until(() => rig.open() === 0);
  await until(() => rig.following() === 0);
});

test('feeds without viewers are kept up to their bound, and the oldest is closed first', async t => {
  const rig = await openRig(t, { limits: { idleFeedsMax: 2, feedLingerMs: 60_000 } });
  const [oldest, ...kept] = [await started(rig), await started(rig), await started(rig)];
  assert.equal(rig.following(), 2);
  for (const id of kept) {
    const stream = await open(rig, 'subscribe', { id });
    await stream.take(1);
    assert.equal(rig.following(), 2);
    await stream.cut();
    await until(() => rig.open() === 0);
  }
  await (await open(rig, 'subscribe', { id: oldest })).take(1);
  assert.equal(rig.following(), 3);
});

test('a lingering feed that is used again stays open', async t => {
  const rig = await openRig(t, { limits: { feedLingerMs: 200 } });
  const taskId = await started(rig);
  const stream = await open(rig, 'subscribe', { id: taskId });
  await stream.take(1);
  await sleep(400);
  assert.equal(rig.following(), 1);
  await rig.relay.end(taskId, 'FAILED');
  assert.deepEqual(shape(await stream.rest()), ['failed']);
});

test('a task that was erased is shown from memory for feedLingerMs at most, although a client asks for it again and again', async t => {
  const rig = await openRig(t, { limits: { feedLingerMs: 500 } });
  const taskId = await started(rig);
  await rig.relay.end(taskId);
  const answer = () => call(rig, 'get', { id: taskId });
  await until(async () => (await answer()).result?.status.state === 'TASK_STATE_COMPLETED');
  await rig.log.purgeTask(taskId);
  // The feed is still open, and each request would renew its time.
  await until(async () => (await answer()).error?.code === -32001, 'TASK_NOT_FOUND');
});

test('the stream of a further message ends without affecting another viewer of the task', async t => {
  const rig = await openRig(t, { limits: { feedLingerMs: 20 } });
  rig.relay.onClient = id => rig.relay.end(id, 'INPUT_REQUIRED');
  const { result } = await call(rig, 'send', sendParams(userMessage('x')));
  const taskId = result.task.id as string;
  const viewer = await open(rig, 'subscribe', { id: taskId });
  await viewer.take(1);
  await (await open(rig, 'stream', sendParams(userMessage('y', { taskId })))).rest();
  await until(() => rig.open() === 1);
  await sleep(100);
  assert.equal(rig.following(), 1, 'the feed stays open');
  await rig.relay.end(taskId, 'FAILED');
  assert.equal(shape(await viewer.rest()).at(-1), 'failed');
});

test('a client that reads nothing is cut at its bound, others get everything, and it resumes with its cursor', async t => {
  const rig = await openRig(t, { limits: { viewerBufferBytesMax: 64 * 1024, ringBytesMax: 64 * 1024 } });
  const taskId = await started(rig);
  const deaf = await deafClient(rig, taskId, t);
  const reader = await open(rig, 'subscribe', { id: taskId });
  await reader.take(1);
  await until(() => rig.open() === 2);
  const rest = reader.rest();
  await rig.relay.openArtifact(taskId, 'l');
  const piece = 'x'.repeat(32 * 1024);
  let sent = 0;
  // The kernel buffers some megabytes before the server has to keep any data.
  while (rig.open() === 2 && sent < 2_000) {
    await rig.relay.text(taskId, 'l', piece);
    await sleep(0);
    sent += 1;
  }
  await until(() => rig.open() === 1);
  await rig.relay.end(taskId);
  const frames = await rest;
  assert.deepEqual(shape(frames.slice(-3)), ['+.', 'working', 'completed']);
  assert.equal(frames.length, sent + 3);
  assert.equal(rig.lines.filter(line => line.message === 'stream cut' && line.fields.reason === 'slow_viewer').length, 1);
  deaf.destroy();
  const back = await open(rig, 'subscribe', { id: taskId }, { headers: { 'last-event-id': frames[4]!.id! } });
  assert.deepEqual(
    (await back.rest()).map(frame => frame.id),
    frames.slice(5).map(frame => frame.id),
  );
});

test('a large snapshot does not count against its reader, and a reader that never reads it is cut', async t => {
  const snapshotBytesMax = Number.POSITIVE_INFINITY;
  const rig = await openRig(t, { limits: { viewerBufferBytesMax: 128 * 1024, viewerStallMsMax: 1_500, snapshotBytesMax } });
  const taskId = await started(rig);
  await rig.relay.openArtifact(taskId, 'l');
  const piece = 'y'.repeat(500 * 1024);
  for (let n = 0; n < 24; n += 1) await rig.relay.text(taskId, 'l', piece);
  const reader = await open(rig, 'subscribe', { id: taskId });
  await rig.relay.text(taskId, 'l', 'after');
  const [head, next] = await reader.take(2);
  assert.equal(JSON.stringify(head?.rpc.result).includes(piece), true);
  assert.deepEqual(shape([next!]), ['+after']);
  await reader.cut();
  await deafClient(rig, taskId, t);
  await until(() => rig.lines.some(line => line.message === 'stream cut'));
});

test('an idle stream gets a comment per interval', async t => {
  const heartbeatMs = 50;
  const rig = await openRig(t, { limits: { heartbeatMs } });
  const taskId = await started(rig);
  const beganMs = performance.now();
  const response = await post(rig, 'subscribe', { id: taskId });
  let text = '';
  const comments = () => text.split(': keep-alive\n\n').length - 1;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    if (comments() >= 3) break;
  }
  assert.ok(comments() >= 3, text);
  // There are two intervals between the first comment and the third.
  const passedMs = performance.now() - beganMs;
  assert.ok(passedMs >= heartbeatMs, `three comments within ${passedMs} ms`);
});

test('closing the app drains open streams with a retry delay, without waiting for clients', async t => {
  const rig = await openRig(t);
  const taskId = await started(rig);
  const other = await rig.another();
  const response = await post(rig, 'subscribe', { id: taskId }, { id: 'my-id' });
  const waiting = call(rig, 'send', sendParams(userMessage('x')));
  await until(() => rig.open() === 2);
  await until(() => rig.following() === 2);
  const text = response.text();
  await rig.close();
  const written = await text;
  const drain = /retry: (\d+)\nevent: drain\ndata: (.*)\n\n$/.exec(written);
  assert(drain !== null);
  assert(Number(drain[1]) >= 500 && Number(drain[1]) <= 1000);
  const data = JSON.parse(drain[2]!) as { id: string; error: { code: number; data: { metadata: { retryable: string } }[] } };
  assert.deepEqual([data.id, data.error.code, data.error.data[0]?.metadata.retryable], ['my-id', -32603, 'true']);
  const answered = await waiting;
  assert.equal(answered.result?.task.status.state ?? answered.error?.data[0].reason, 'TASK_STATE_SUBMITTED');
  const cursor = /id: (\S+)/.exec(written)![1]!;
  const resumed = await open(other, 'subscribe', { id: taskId }, { headers: { 'last-event-id': cursor } });
  await rig.relay.end(taskId, 'FAILED');
  assert.deepEqual(shape(await resumed.rest()), ['failed']);
});

test('a stream that opens while the server drains is drained as well, and its connection does not delay closing', async t => {
  const rig = await openRig(t);
  const [first, second] = [await started(rig), await started(rig)];
  const other = await rig.another();
  const held = Promise.withResolvers<void>();
  let reads = 0;
  const { facts } = other.log;
  const last = facts.last.bind(facts);
  facts.last = async id => {
    reads += 1;
    await held.promise;
    return last(id);
  };
  const opening = [
    post(other, 'subscribe', { id: first }),
    post(other, 'stream', sendParams(userMessage('y', { taskId: second }))),
  ];
  await until(() => reads === 2);
  const startedAt = performance.now();
  const closing = other.close();
  await sleep(50);
  held.resolve();
  for (const response of await Promise.all(opening)) assert.match(await response.text(), /event: drain\ndata: /);
  await closing;
  const ms = performance.now() - startedAt;
  assert.ok(ms < CLOSE_MS_MAX - 1_000, `closed after ${ms} ms`);
});

test('losing the log during a stream sends a retryable error frame, and nothing hangs', async t => {
  const rig = await openRig(t);
  const taskId = await started(rig);
  const other = await rig.another();
  const stream = await open(other, 'subscribe', { id: taskId });
  await stream.take(1);
  await other.log.close();
  const [frame] = await stream.rest();
  assert.equal(frame?.rpc.error?.data[0].reason, 'UNAVAILABLE');
  assert.equal((await post(other, 'get', { id: taskId })).status, 503);
});
