import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Authenticate, LIMITS } from '@hopline/a2a-server';
import { LogUnavailable } from '@hopline/log';
import { until } from '../../../test/kit/until.ts';
import { call, openRig, type Rig, sendParams, userMessage } from './http-server.test-kit.ts';
import { EXPORTS_AT_ONCE_MAX, type ExportTask } from './task-export-route.ts';

/** The lines of an export, which arrive when the test sends them. */
class Lines {
  readonly #lines = new TransformStream<string>();
  readonly #writer = this.#lines.writable.getWriter();
  /** Resolves when the server stops reading. */
  readonly closed = this.#writer.closed.catch(() => {});
  readonly readable = this.#lines.readable;

  write(line: string): void {
    this.#writer.write(line).catch(() => {});
  }

  async end(): Promise<void> {
    await this.#writer.close();
  }
}

async function rigWith(t: TestContext, limits: Partial<typeof LIMITS> = {}, ownExport?: ExportTask) {
  const opened: Lines[] = [];
  const exportLines: ExportTask = async () => {
    const lines = new Lines();
    opened.push(lines);
    return lines.readable;
  };
  const rig = await openRig(t, { limits: { ...LIMITS, ...limits }, exportTask: ownExport ?? exportLines });
  rig.relay.onClient = taskId => rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
  const { result } = await call(rig, 'send', sendParams(userMessage('x'), '1.0', { blocking: false }));
  return { rig, taskId: result.task.id as string, opened };
}

const exported = (rig: Rig, taskId: string, signal?: AbortSignal) =>
  fetch(`${rig.url}/tasks/${taskId}/export`, { headers: { 'a2a-version': '1.0' }, ...(signal && { signal }) });

test('exports beyond the limit get 503 with Retry-After, until a running one has ended', { timeout: 120_000 }, async t => {
  const { rig, taskId, opened } = await rigWith(t);
  const running = Array.from({ length: EXPORTS_AT_ONCE_MAX }, () => exported(rig, taskId));
  await until(() => opened.length === EXPORTS_AT_ONCE_MAX);
  const refused = await exported(rig, taskId);
  assert.deepEqual([refused.status, refused.headers.has('retry-after')], [503, true]);
  for (const lines of opened) {
    lines.write('line\n');
    await lines.end();
  }
  for (const response of await Promise.all(running)) assert.equal(await response.text(), 'line\n');
  const next = exported(rig, taskId);
  await until(() => opened.length === EXPORTS_AT_ONCE_MAX + 1);
  await opened.at(-1)!.end();
  assert.equal((await next).status, 200);
});

test("a caller and its tenant have one export at a time: a second one gets 429 with Retry-After, and another caller's export is served", {
  timeout: 120_000,
}, async t => {
  const opened: Lines[] = [];
  const exportTask: ExportTask = async () => {
    opened.push(new Lines());
    return opened.at(-1)!.readable;
  };
  const authenticate: Authenticate = async ({ headers }) => {
    const [subject, tenant] = String(headers['x-subject']).split('@');
    return { subject: subject!, ...(tenant !== undefined && { tenant }) };
  };
  const rig = await openRig(t, { exportTask, authenticate });
  rig.relay.onClient = taskId => rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
  const exportOf = async (subject: string) => {
    const headers = { 'x-subject': subject, 'a2a-version': '1.0' };
    const { result } = await call(rig, 'send', sendParams(userMessage('x'), '1.0', { blocking: false }), { headers });
    return () => fetch(`${rig.url}/tasks/${result.task.id}/export`, { headers });
  };
  const [ofAnna, alsoOfAnna] = [await exportOf('anna@acme'), await exportOf('anna@acme')];
  const [ofHerTenant, ofBert] = [await exportOf('eva@acme'), await exportOf('bert')];
  const first = ofAnna();
  await until(() => opened.length === 1);
  for (const second of [ofAnna, alsoOfAnna, ofHerTenant]) {
    const refused = await second();
    assert.deepEqual([refused.status, refused.headers.has('retry-after')], [429, true]);
  }
  const other = ofBert();
  await until(() => opened.length === 2);
  await opened[0]!.end();
  assert.equal((await first).status, 200);
  const next = alsoOfAnna();
  await until(() => opened.length === 3);
  for (const lines of opened.slice(1)) await lines.end();
  assert.deepEqual([(await other).status, (await next).status], [200, 200]);
});

test('an export that fails before its first line is an error of the request, and frees its place', {
  timeout: 120_000,
}, async t => {
  const failures: (() => Promise<AsyncIterable<string> | undefined>)[] = [
    async () => undefined,
    () => Promise.reject(new LogUnavailable('no leader')),
    async () => new ReadableStream<string>({ start: lines => lines.error(new LogUnavailable('no leader')) }),
  ];
  let exports = 0;
  const { rig, taskId } = await rigWith(t, {}, () => failures[exports++ % failures.length]!());
  for (let round = 1; round <= EXPORTS_AT_ONCE_MAX; round += 1) {
    for (const status of [404, 503, 503]) assert.equal((await exported(rig, taskId)).status, status);
  }
  assert.equal(exports, EXPORTS_AT_ONCE_MAX * failures.length, 'each had a place');
});

test('a client that disconnects, even before the first line, frees its place, and the log is not read any further', {
  timeout: 120_000,
}, async t => {
  const { rig, taskId, opened } = await rigWith(t);
  for (let left = 1; left <= 2 * EXPORTS_AT_ONCE_MAX; left += 1) {
    const leave = new AbortController();
    const response = exported(rig, taskId, leave.signal);
    await until(() => opened.length === left);
    const lines = opened.at(-1)!;
    if (left % 2 === 0) {
      lines.write('line\n');
      await response;
    }
    leave.abort();
    await response.catch(() => {});
    // A connection that was opened later is served only after the server has seen the end of this one.
    await fetch(`${rig.url}/.well-known/agent-card.json`);
    lines.write('line\n');
    await lines.closed;
  }
});

/** With a shorter time, a healthy client on a busy machine would be cut. */
const STALL_MS = 1_500;

/** More lines than the kernel buffers for a connection. */
async function* endless(onClosed: () => void): AsyncGenerator<string> {
  try {
    for (;;) yield 'x'.repeat(1024 * 1024);
  } finally {
    onClosed();
  }
}

/** Requests an export, and reads nothing of it. */
function ask(t: TestContext, rig: Rig, taskId: string): Socket {
  const { hostname, port } = new URL(rig.url);
  const socket = connect(Number(port), hostname)
    .pause()
    .on('error', () => {});
  t.after(() => socket.destroy());
  socket.write(`GET /tasks/${taskId}/export HTTP/1.1\r\nhost: a\r\na2a-version: 1.0\r\nconnection: close\r\n\r\n`);
  return socket;
}

test('an export is cut and logged if the log fails within the response, and not logged if the client disconnects', {
  timeout: 120_000,
}, async t => {
  const reading = Promise.withResolvers<void>();
  async function* lines(): AsyncGenerator<string> {
    yield 'line\n';
    await reading.promise;
    throw new LogUnavailable('away');
  }
  const { rig, taskId } = await rigWith(t, {}, async () => lines());
  const leave = new AbortController();
  const left = await exported(rig, taskId, leave.signal);
  leave.abort();
  await assert.rejects(left.text(), { name: 'AbortError' });
  const response = await exported(rig, taskId);
  reading.resolve();
  await assert.rejects(response.text(), { message: 'terminated' });
  await until(() => rig.lines.length > 0);
  assert.deepEqual(
    rig.lines.map(({ level, fields }) => [level, fields.code, String(fields.err)]),
    [['warn', 'UNAVAILABLE', 'LogUnavailable: away']],
  );
});

test('a client that reads nothing of its export frees its place after viewerStallMsMax, and not before', {
  timeout: 120_000,
}, async t => {
  let [opened, closed] = [0, 0];
  const exportTask = async () => {
    opened += 1;
    return endless(() => (closed += 1));
  };
  const { rig, taskId } = await rigWith(t, { viewerStallMsMax: STALL_MS }, exportTask);
  const startedAt = performance.now();
  for (let stalled = 1; stalled <= EXPORTS_AT_ONCE_MAX; stalled += 1) {
    ask(t, rig, taskId);
    await until(() => opened === stalled);
  }
  await until(() => closed === EXPORTS_AT_ONCE_MAX);
  assert.ok(performance.now() - startedAt >= STALL_MS);
  const leave = new AbortController();
  assert.equal((await exported(rig, taskId, leave.signal)).status, 200);
  leave.abort();
});

/** Reads `bytes` from a socket every `everyMs`. */
function readSlowly(socket: Socket, bytes: number, everyMs: number): void {
  const timer = setInterval(() => socket.read(Math.min(bytes, socket.readableLength)), everyMs);
  socket.once('close', () => clearInterval(timer)).on('readable', () => {});
}

test('a client that trickles its export frees its place after exportReadMsMax, and not before', { timeout: 120_000 }, async t => {
  const closed = Promise.withResolvers<void>();
  const exportTask = async () => endless(closed.resolve);
  const { rig, taskId } = await rigWith(t, { exportReadMsMax: STALL_MS }, exportTask);
  const startedAt = performance.now();
  readSlowly(ask(t, rig, taskId), 16 * 1024, 100);
  await closed.promise;
  assert.ok(performance.now() - startedAt >= STALL_MS);
});

test('a slow client reads a large export to its end', { timeout: 120_000 }, async t => {
  const lines = Array.from({ length: 64 }, () => 'x'.repeat(512 * 1024));
  const linesBytes = 64 * 512 * 1024;
  const exportTask = async () => Readable.from(lines);
  const { rig, taskId } = await rigWith(t, { exportReadMsMax: STALL_MS }, exportTask);
  const startedAt = performance.now();
  const socket = ask(t, rig, taskId);
  let bytes = 0;
  // Waits until the time by which it should have read this much, so that a client that a busy machine has delayed reads the rest faster. A
  // fixed wait after each chunk would add up to a client that is too slow.
  const endMs = 2 * STALL_MS;
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    const aheadMs = (bytes / linesBytes) * endMs - (performance.now() - startedAt);
    if (aheadMs <= 0) return;
    socket.pause();
    setTimeout(() => socket.resume(), aheadMs);
  });
  socket.resume();
  await once(socket, 'close');
  assert.ok(bytes > linesBytes, `${bytes} bytes`);
  assert.ok(performance.now() - startedAt > STALL_MS, 'it took longer than exportReadMsMax');
});

test('a client that waits for the log keeps its export', { timeout: 120_000 }, async t => {
  const { rig, taskId, opened } = await rigWith(t, { viewerStallMsMax: 100, exportReadMsMax: 400 });
  const response = exported(rig, taskId);
  await until(() => opened.length === 1);
  opened[0]!.write('first\n');
  const body = (await response).text();
  for (const line of ['second\n', 'third\n']) {
    await sleep(500);
    opened[0]!.write(line);
  }
  await opened[0]!.end();
  assert.equal(await body, 'first\nsecond\nthird\n');
});
