import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { call, openRig, post, type Rig, sendParams, userMessage } from './http-server.test-kit.ts';
import { REFUSED_BODY_BYTES_MAX } from './refused-body.ts';
import { CLOSE_MS_MAX } from './register-a2a.ts';
import { LATE_REQUEST_CHECK_MS } from './server-options.ts';

const MIB = 1024 * 1024;
/** Tolerated delay of a response on a busy machine. */
const PATIENCE_MS = 10_000;

type Raw = { socket: Socket; received: () => string; closed: Promise<void> };

/** A raw connection, without any client library. */
function speak(t: TestContext, rig: Rig, head: string): Raw {
  const { hostname, port } = new URL(rig.url);
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  let text = '';
  const socket = connect(Number(port), hostname);
  socket.write(head.replaceAll('\n', '\r\n'));
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.on('error', () => {}).once('close', () => resolve());
  t.after(() => socket.destroy());
  return { socket, received: () => text, closed };
}

async function receives(raw: Raw, what: RegExp): Promise<void> {
  const until = Date.now() + PATIENCE_MS;
  while (!what.test(raw.received())) {
    assert(Date.now() < until, `received ${JSON.stringify(raw.received().slice(0, 200))}`);
    await sleep(10);
  }
}

const POST = 'POST / HTTP/1.1\nhost: a\ncontent-type: application/json\n';
/** A chunk shorter than its declared length. */
const OPEN_CHUNK = 'transfer-encoding: chunked\n\nffffff\n';

test('a request sent byte by byte is cut at its deadline in any part, without delaying others', async t => {
  const rig = await openRig(t, { limits: { requestMsMax: 1_500, bodyBytesMax: 100 } });
  const startedAt = performance.now();
  const late = [
    'POST / HT',
    POST,
    `${POST}content-length: 90\n\n`,
    `${POST}${OPEN_CHUNK}`,
    `${POST}content-length: 5000000\n\n`,
    POST.replace('application/json', 'text/xml').concat('content-length: 90\n\n'),
    POST.replace('POST /', 'POST /nothing').concat('content-length: 90\n\n'),
  ].map(head => speak(t, rig, head));
  const trickle = setInterval(() => {
    for (const { socket } of late) if (socket.writable) socket.write('x');
  }, 100);
  t.after(() => clearInterval(trickle));
  assert.equal((await call(rig, 'get', { id: 'unknown' })).error?.code, -32001);
  await Promise.all(late.map(one => one.closed));
  const ms = performance.now() - startedAt;
  assert(ms >= 1_500, `cut after ${ms} ms`);
  assert(ms < 1_500 + LATE_REQUEST_CHECK_MS + PATIENCE_MS, `cut after ${ms} ms`);
  for (const one of late.slice(2)) assert.match(one.received(), /^HTTP\/1\.1 408 /);
  assert.equal((await call(rig, 'get', { id: 'unknown' })).error?.code, -32001);
  assert.deepEqual(rig.lines, []);
});

test('a refusal is sent only after the whole body has arrived, because a client that is still writing would not read it', async t => {
  const rig = await openRig(t);
  const length = 5 * MIB;
  for (const [status, head] of [
    [413, POST],
    [415, POST.replace('application/json', 'text/xml')],
    [404, POST.replace('POST /', 'POST /nothing')],
  ] as const) {
    // A server that closes while the body is being sent (`connection: close`) would reset the connection.
    const raw = speak(t, rig, `${head}connection: close\ncontent-length: ${length}\n\n`);
    raw.socket.write('x'.repeat(length - 1));
    await call(rig, 'get', { id: 'unknown' });
    assert.equal(raw.received(), '', `${status}`);
    raw.socket.write('x');
    await receives(raw, new RegExp(`^HTTP/1\\.1 ${status} [^]*\\r\\n\\r\\n\\{.*\\}$`));
    await raw.closed;
  }
});

test('a refused body up to the limit is discarded completely, a larger one is not awaited', async t => {
  const rig = await openRig(t);
  const patient = speak(t, rig, `${POST}content-length: ${REFUSED_BODY_BYTES_MAX}\n\n`);
  const declared = speak(t, rig, `${POST}content-length: ${REFUSED_BODY_BYTES_MAX + 1}\n\n`);
  await receives(declared, /^HTTP\/1\.1 413 /);
  const chunk = `100000\r\n${'x'.repeat(MIB)}\r\n`;
  const found = speak(t, rig, `${POST}transfer-encoding: chunked\n\n`);
  for (let sent = 0; sent <= REFUSED_BODY_BYTES_MAX + MIB && found.received() === ''; sent += MIB) {
    found.socket.write(chunk);
    await sleep(1);
  }
  await receives(found, /^HTTP\/1\.1 413 /);
  await found.closed;
  assert.equal(patient.received(), '');
  patient.socket.write('x'.repeat(REFUSED_BODY_BYTES_MAX));
  await receives(patient, /^HTTP\/1\.1 413 /);
});

test('an incomplete request does not delay closing', async t => {
  const rig = await openRig(t);
  const raw = speak(t, rig, `${POST}content-length: 90\n\n`);
  await call(rig, 'get', { id: 'unknown' });
  const startedAt = performance.now();
  await rig.close();
  await raw.closed;
  const ms = performance.now() - startedAt;
  assert(ms > CLOSE_MS_MAX - 100 && ms < CLOSE_MS_MAX + PATIENCE_MS, `closed after ${ms} ms`);
});

test('a response that ends after closing began closes its connection, and closing does not wait for the client', async t => {
  const rig = await openRig(t);
  const begun = Promise.withResolvers<string>();
  rig.relay.onClient = taskId => begun.resolve(taskId);
  const stream = await post(rig, 'stream', sendParams(userMessage('x')));
  const taskId = await begun.promise;
  const asked = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const { last } = rig.log.facts;
  rig.log.facts.last = async id => {
    asked.resolve();
    await held.promise;
    return last.call(rig.log.facts, id);
  };
  // Keeps connections open, as a pooling HTTP client does.
  const raw = speak(
    t,
    rig,
    `${POST.replace('POST /', `GET /tasks/${taskId}`).replace('\ncontent', '\na2a-version: 1.0\ncontent')}\n`,
  );
  await asked.promise;
  const startedAt = performance.now();
  const closing = rig.close();
  // The server begins to close.
  assert.match(await stream.text(), /event: drain\n/);
  held.resolve();
  await closing;
  const ms = performance.now() - startedAt;
  assert(ms < CLOSE_MS_MAX - 1_000, `closed after ${ms} ms`);
  await raw.closed;
  assert.match(raw.received(), /^HTTP\/1\.1 200 .*\r\nconnection: close\r\n.*\r\n\r\n\{.*\}$/is);
});
