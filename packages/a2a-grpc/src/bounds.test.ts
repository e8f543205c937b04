import assert from 'node:assert/strict';
import { type ClientHttp2Session, connect, constants } from 'node:http2';
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { listen } from '../../../test/kit/listen.ts';
import { until } from '../../../test/kit/until.ts';
import { CallFailed, shape, userMessage } from './grpc-client.test-kit.ts';
import { frameEncoder } from './grpc-sink.ts';
import { openRig, type Rig } from './rig.test-kit.ts';
import { PROCEDURES, SERVICE_1_0 } from './services.ts';

const KIB = 1024;

async function started(rig: Rig): Promise<string> {
  const configuration = { returnImmediately: true };
  return (await rig.client().call('SendMessage', { message: userMessage('x'), configuration })).task.id;
}

/** A plain HTTP/2 connection, for frames that no gRPC library sends. */
function session(t: TestContext, rig: Rig): ClientHttp2Session {
  const made = connect(`http://${rig.address}`);
  made.on('error', () => {});
  t.after(() => made.destroy());
  return made;
}

/** A proxy that can stop forwarding, like a machine without power. */
async function freezable(t: TestContext, port: number): Promise<{ port: number; freeze(): void }> {
  const sockets: Socket[] = [];
  const proxy = createServer(near => {
    const far = createConnection(port, '127.0.0.1');
    for (const socket of [near, far]) sockets.push(socket.on('error', () => {}));
    near.pipe(far).pipe(near);
  });
  await listen(proxy);
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  const freeze = () => {
    for (const socket of sockets) socket.unpipe().pause();
  };
  return { port: (proxy.address() as AddressInfo).port, freeze };
}

const HEAD = {
  ':method': 'POST',
  ':path': `/${SERVICE_1_0}/GetTask`,
  'content-type': 'application/grpc',
  te: 'trailers',
  'a2a-version': '1.0',
};

test('a stream whose client reads nothing is cut at its limit; other streams of the connection get everything, and the client can resume', async t => {
  const rig = await openRig(t, { limits: { viewerBufferBytesMax: 128 * KIB, ringBytesMax: 64 * KIB } });
  const id = await started(rig);
  const client = rig.client({ 'grpc.max_receive_message_length': -1 });
  const deaf = client.stream('SubscribeToTask', { id });
  await deaf.take(1);
  const reader = client.stream('SubscribeToTask', { id });
  const events = await reader.take(1);
  await rig.relay.openArtifact(id, 'l');
  const piece = 'x'.repeat(32 * KIB);
  while (rig.open() === 2 && events.length < 2_000) {
    await rig.relay.text(id, 'l', piece);
    events.push(await reader.next());
  }
  assert.equal(rig.open(), 1);
  await rig.relay.end(id);
  events.push(...(await reader.rest()));
  assert.deepEqual(shape(events.slice(-3)), ['+', 'working', 'completed']);
  const cut = rig.lines.filter(({ message, fields }) => message === 'stream cut' && fields.reason === 'slow_viewer');
  assert.equal(cut.length, 1);
  assert.equal((await deaf.failure()).code, status.CANCELLED);
  const back = client.stream('SubscribeToTask', { id }, { metadata: { 'last-event-id': '1.0' } });
  assert.deepEqual(await back.rest(), events.slice(1));
});

test('a large task is written in slices, and a client that reads none of them in time is cut', async t => {
  // Both ends share one event loop, so with a shorter limit a busy machine would also cut the healthy client.
  const rig = await openRig(t, { limits: { viewerStallMsMax: 4_000 } });
  const id = await started(rig);
  await rig.relay.openArtifact(id, 'l');
  for (let sent = 0; sent < 8; sent += 1) await rig.relay.text(id, 'l', 'x'.repeat(256 * KIB));
  const { promise, resolve } = Promise.withResolvers<number>();
  const raw = session(t, rig).request({ ...HEAD, ':path': `/${SERVICE_1_0}/SubscribeToTask` });
  raw.on('error', () => {}).once('close', () => resolve(raw.rstCode));
  const request = Buffer.concat([Buffer.from([0x12, id.length]), Buffer.from(id)]);
  raw.end(Buffer.concat([Buffer.from([0, 0, 0, 0, request.length]), request]));
  await until(() => rig.open() === 1);
  // `raw` is never read: its window fills and stays full.
  assert.equal(await promise, constants.NGHTTP2_CANCEL);
  await until(() => rig.open() === 0);
  const [event] = await rig.client().stream('SubscribeToTask', { id }).take(1);
  const parts = event.task.artifacts[0].parts as { text: string }[];
  assert.equal(
    parts.reduce((sum, part) => sum + part.text.length, 0),
    2 * 1024 * KIB,
  );
});

test('a request of the largest size is accepted, one byte more is refused', async t => {
  const bodyBytesMax = 4 * KIB;
  const rig = await openRig(t, { limits: { bodyBytesMax } });
  const call = async (bytes: number) => {
    // The request is a tag, a length of two bytes, and the id.
    const error = await rig
      .client()
      .call('GetTask', { id: 'x'.repeat(bytes - 3) })
      .catch(thrown => thrown as CallFailed);
    assert.ok(error instanceof CallFailed);
    return error.code;
  };
  assert.equal(await call(bodyBytesMax), status.INVALID_ARGUMENT);
  assert.equal(await call(bodyBytesMax + 1), status.RESOURCE_EXHAUSTED);
});

test('streams up to the limit are accepted, one more is refused with a retry delay', async t => {
  const rig = await openRig(t, { limits: { streamsMax: 2 } });
  const id = await started(rig);
  const client = rig.client();
  const streams = [client.stream('SubscribeToTask', { id }), client.stream('SubscribeToTask', { id })];
  for (const stream of streams) await stream.take(1);
  const refused = await client.stream('SubscribeToTask', { id }).failure();
  assert.equal(refused.code, status.UNAVAILABLE);
  assert.equal(refused.details[1].retryDelay, '1s');
  assert.equal((await client.call('GetTask', { id })).id, id, 'reading needs no place');
  streams[0]!.call.cancel();
  await until(() => rig.open() === 1);
  assert.equal((await client.stream('SubscribeToTask', { id }).take(1)).length, 1);
});

test('calls up to the limit of a connection run, another waits until one ends', async t => {
  const rig = await openRig(t, { grpc: { limits: { callsPerConnectionMax: 2 } } });
  const [id, ending] = [await started(rig), await started(rig)];
  const client = rig.client();
  const streams = [client.stream('SubscribeToTask', { id }), client.stream('SubscribeToTask', { id: ending })];
  for (const stream of streams) await stream.take(1);
  const third = client.stream('SubscribeToTask', { id }).take(1);
  assert.equal(await Promise.race([third, sleep(300, 'waits')]), 'waits');
  assert.equal(rig.open(), 2);
  await rig.relay.answer(ending, ['a']);
  await streams[1]!.rest();
  assert.equal((await third).length, 1);
});

test('connections up to the limit are accepted, one more is dropped without affecting the others', async t => {
  const rig = await openRig(t, { limits: { connectionsMax: 1 } });
  const client = rig.client();
  await client.call('ListTasks', {});
  const dropped = createConnection(rig.port, '127.0.0.1')
    .on('error', () => {})
    .resume();
  await new Promise(resolve => dropped.once('close', resolve));
  await client.call('ListTasks', {});
});

test('an incomplete request is refused after its time', async t => {
  const rig = await openRig(t, { limits: { requestMsMax: 200 } });
  const raw = session(t, rig).request(HEAD);
  const { promise, resolve } = Promise.withResolvers<unknown>();
  raw
    .once('response', headers => resolve(headers['grpc-status']))
    .on('error', () => {})
    .resume();
  raw.write(Buffer.from([0, 0, 0, 0, 9, 0x12]));
  assert.equal(Number(await promise), status.DEADLINE_EXCEEDED);
});

test('a connection that answers no ping is dropped, with its streams', async t => {
  const rig = await openRig(t, { limits: { heartbeatMs: 100 }, grpc: { limits: { pingMsMax: 2_000 } } });
  const id = await started(rig);
  const wire = await freezable(t, rig.port);
  const stream = rig.client({}, `127.0.0.1:${wire.port}`).stream('SubscribeToTask', { id });
  await stream.take(1);
  await sleep(3_000);
  assert.equal(rig.open(), 1, 'it answers pings, and stays');
  wire.freeze();
  await until(() => rig.open() === 0);
});

test('requests that are not gRPC, and unknown procedures, are refused', async t => {
  const rig = await openRig(t);
  const connection = session(t, rig);
  const exchange = async (headers: object): Promise<Record<string, unknown>> => {
    const { promise, resolve } = Promise.withResolvers<Record<string, unknown>>();
    connection
      .request({ ...HEAD, ...headers })
      .once('response', resolve)
      .on('error', () => {})
      .end();
    return promise;
  };
  assert.equal((await exchange({ 'content-type': 'application/json' }))[':status'], 415);
  assert.equal(Number((await exchange({ ':path': `/${SERVICE_1_0}/Nothing` }))['grpc-status']), status.UNIMPLEMENTED);
  assert.equal(PROCEDURES.length, 21);
});

test('an event is encoded once for any number of viewers', async t => {
  const rig = await openRig(t);
  const id = await started(rig);
  const { dialect } = PROCEDURES.find(({ path }) => path === `/${SERVICE_1_0}/SubscribeToTask`)!;
  const encode = t.mock.method(frameEncoder(dialect), 'encode');
  const client = rig.client();
  const streams = Array.from({ length: 5 }, () => client.stream('SubscribeToTask', { id }));
  for (const stream of streams) await stream.take(1);
  await rig.relay.answer(id, ['a', 'b', 'c']);
  const seen = await Promise.all(streams.map(stream => stream.rest()));
  for (const events of seen) assert.deepEqual(events, seen[0]);
  assert.equal(encode.mock.callCount(), seen[0]?.length);
});
