import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LIMITS } from '@hopline/a2a-server';
import { call, openRig, type Rig, sendParams, userMessage } from './http-server.test-kit.ts';

/** With a shorter time, a healthy client on a busy machine would be cut. */
const STALL_MS = 1_500;
const PATIENCE_MS = 20_000;
/** More bytes than the kernel buffers for a client that has read nothing. */
const TEXT_BYTES = 16 * 1024 * 1024;
/** The kernel of a client that has read much buffers up to `tcp_rmem` (32 MiB on some machines), and its server's 4 MiB. */
const UNREAD_BYTES = 3 * TEXT_BYTES;
const PIECE_BYTES = 256 * 1024;

/** A task with a large text, and a second process that accepts one connection. */
async function openLarge(t: TestContext): Promise<{ rig: Rig; get: string; id: string }> {
  const first = await openRig(t);
  const { result } = await call(first, 'send', sendParams(userMessage('x'), '1.0', { blocking: false }));
  const id: string = result.task.id;
  await first.relay.openArtifact(id, 'l');
  for (let sent = 0; sent < TEXT_BYTES; sent += PIECE_BYTES) await first.relay.text(id, 'l', 'x'.repeat(PIECE_BYTES));
  const rig = await first.another({
    limits: { ...LIMITS, viewerStallMsMax: STALL_MS, viewerBufferBytesMax: 4 * TEXT_BYTES, connectionsMax: 1 },
  });
  return { rig, id, get: `GET /tasks/${id} HTTP/1.1\nhost: a\na2a-version: 1.0\n` };
}

function writeRequest(t: TestContext, rig: Rig, head: string): Socket {
  const { hostname, port } = new URL(rig.url);
  const socket = connect(Number(port), hostname).pause();
  socket.write(`${head}\n`.replaceAll('\n', '\r\n'));
  t.after(() => socket.destroy());
  return socket.on('error', () => {});
}

/** Milliseconds until the only connection slot is free. */
async function msUntilSlotFree(rig: Rig): Promise<number> {
  const startedAt = performance.now();
  for (;;) {
    const ms = performance.now() - startedAt;
    const isFree = await fetch(`${rig.url}/.well-known/agent-card.json`, { headers: { connection: 'close' } }).then(
      answer => answer.ok,
      () => false,
    );
    if (isFree) return ms;
    assert.ok(ms < PATIENCE_MS, 'the connection is still open');
    await sleep(20);
  }
}

test('a response that its client does not read is dropped with its connection', async t => {
  const { rig, get } = await openLarge(t);
  writeRequest(t, rig, get);
  await sleep(100);
  const ms = await msUntilSlotFree(rig);
  assert.ok(ms > STALL_MS - 200, `dropped after ${ms} ms`);
});

test('an ended stream that is not read to its end is dropped with its connection', async t => {
  const { rig, id } = await openLarge(t);
  const socket = writeRequest(t, rig, `GET /tasks/${id}:subscribe HTTP/1.1\nhost: a\na2a-version: 1.0\n`);
  let bytes = 0;
  await new Promise<void>(resolve => {
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > TEXT_BYTES) resolve(void socket.pause());
    });
    socket.resume();
  });
  for (let sent = 0; sent < UNREAD_BYTES; sent += PIECE_BYTES) await rig.relay.text(id, 'l', 'x'.repeat(PIECE_BYTES));
  await rig.relay.end(id);
  const ms = await msUntilSlotFree(rig);
  assert.ok(ms > STALL_MS - 200, `dropped after ${ms} ms`);
});

test('a client that reads its response slowly gets all of it', async t => {
  const { rig, get } = await openLarge(t);
  const startedAt = performance.now();
  const socket = writeRequest(t, rig, `${get}connection: close\n`);
  let bytes = 0;
  let last = '';
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    last = chunk.subarray(-2).toString();
    socket.pause();
    setTimeout(() => socket.resume(), 10);
  });
  socket.resume();
  await new Promise(resolve => socket.once('close', resolve));
  assert.ok(bytes > TEXT_BYTES && last.endsWith('}'), `${bytes} bytes`);
  assert.ok(performance.now() - startedAt > STALL_MS, 'it took longer than viewerStallMsMax');
});

test('a client that waits for its response is not dropped, even on a reused connection', async t => {
  const stallMs = 200;
  const rig = await openRig(t, { limits: { ...LIMITS, viewerStallMsMax: stallMs } });
  rig.relay.onClient = async taskId => {
    await sleep(stallMs * 5);
    await rig.relay.end(taskId);
  };
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const ports = new Set<number | undefined>();
  const exchange = async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
    const sent = request(new URL(path, rig.url), { agent, method: 'POST', headers }).end(JSON.stringify(body));
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    ports.add(response.socket.localPort);
    return await json(response);
  };
  await exchange('/tasks/unknown:cancel', {});
  const answer = (await exchange('/message:send', sendParams(userMessage('x')))) as { task: { status: { state: string } } };
  assert.equal(answer.task.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(ports.size, 1);
});
