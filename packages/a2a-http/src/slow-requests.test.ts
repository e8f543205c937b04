import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { call, openRig, type Rig } from './http-server.test-kit.ts';
import { REFUSED_BODY_BYTES_MAX } from './refused-body.ts';
import { CLOSE_MS_MAX } from './register-a2a.ts';
import { LATE_REQUEST_CHECK_MS } from './server-options.ts';

const MIB = 1024 * 1024;
/** How long an answer may take on a busy machine; milliseconds. */
const PATIENCE_MS = 10_000;

type Raw = { socket: Socket; heard: () => string; closed: Promise<void> };

/** A connection below any client library. */
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
  return { socket, heard: () => text, closed };
}

async function hears(raw: Raw, what: RegExp): Promise<void> {
  const until = Date.now() + PATIENCE_MS;
  while (!what.test(raw.heard())) {
    assert(Date.now() < until, `heard ${JSON.stringify(raw.heard().slice(0, 200))}`);
    await sleep(10);
  }
}

const POST = 'POST / HTTP/1.1\nhost: a\ncontent-type: application/json\n';
/** A chunk that is longer than what follows it. */
const OPEN_CHUNK = 'transfer-encoding: chunked\n\nffffff\n';

test('a request that comes byte by byte is cut at its deadline, whatever part of it is late, and nobody else waits', async t => {
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
  for (const one of late.slice(2)) assert.match(one.heard(), /^HTTP\/1\.1 408 /);
  assert.equal((await call(rig, 'get', { id: 'unknown' })).error?.code, -32001);
  assert.deepEqual(rig.lines, []);
});

test('what is refused is answered when its body has come, so that a client that is still writing reads the answer', async t => {
  const rig = await openRig(t);
  const length = 5 * MIB;
  for (const [status, head] of [
    [413, POST],
    [415, POST.replace('application/json', 'text/xml')],
    [404, POST.replace('POST /', 'POST /nothing')],
  ] as const) {
    // Asked to close, a server with bytes under way resets the connection.
    const raw = speak(t, rig, `${head}connection: close\ncontent-length: ${length}\n\n`);
    raw.socket.write('x'.repeat(length - 1));
    await call(rig, 'get', { id: 'unknown' });
    assert.equal(raw.heard(), '', `${status}`);
    raw.socket.write('x');
    await hears(raw, new RegExp(`^HTTP/1\\.1 ${status} [^]*\\r\\n\\r\\n\\{.*\\}$`));
    await raw.closed;
  }
});

test('of the largest body that is read away the last byte is waited for; of one byte more, announced or not, none is', async t => {
  const rig = await openRig(t);
  const patient = speak(t, rig, `${POST}content-length: ${REFUSED_BODY_BYTES_MAX}\n\n`);
  const announced = speak(t, rig, `${POST}content-length: ${REFUSED_BODY_BYTES_MAX + 1}\n\n`);
  await hears(announced, /^HTTP\/1\.1 413 /);
  const chunk = `100000\r\n${'x'.repeat(MIB)}\r\n`;
  const found = speak(t, rig, `${POST}transfer-encoding: chunked\n\n`);
  for (let sent = 0; sent <= REFUSED_BODY_BYTES_MAX + MIB && found.heard() === ''; sent += MIB) {
    found.socket.write(chunk);
    await sleep(1);
  }
  await hears(found, /^HTTP\/1\.1 413 /);
  await found.closed;
  assert.equal(patient.heard(), '');
  patient.socket.write('x'.repeat(REFUSED_BODY_BYTES_MAX));
  await hears(patient, /^HTTP\/1\.1 413 /);
});

test('a request that never comes whole does not hold a door that closes', async t => {
  const rig = await openRig(t);
  const raw = speak(t, rig, `${POST}content-length: 90\n\n`);
  await call(rig, 'get', { id: 'unknown' });
  const startedAt = performance.now();
  await rig.close();
  await raw.closed;
  const ms = performance.now() - startedAt;
  assert(ms > CLOSE_MS_MAX - 100 && ms < CLOSE_MS_MAX + PATIENCE_MS, `closed after ${ms} ms`);
});
