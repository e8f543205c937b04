import assert from 'node:assert/strict';
import { test } from 'node:test';
import { untilTick } from '../../../test/kit/until.ts';
import { BODY_SILENCE_MS_MAX, Connection, HEAD_MS_MAX, RequestError, UnreachableError } from './connection.ts';

const json = (body: object, status = 200) => Response.json(body, { status });

test('a page that was opened while ingress starts reads its agents when ingress answers', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const answers = [
    () => Promise.reject(new TypeError('network')),
    async () => json({}, 502),
    async () => json({ error: { message: 'starting' } }, 503),
    async () => json({ agents: [] }),
  ];
  const connection = new Connection(async path => {
    // The connection itself checks whether the server answers again.
    if (path.endsWith('agent-card.json')) return json({}, 502);
    return answers.shift()!();
  });
  const stop = new AbortController();
  const read = connection.jsonAnswered('/api/agents', stop.signal);
  await untilTick(() => {
    t.mock.timers.tick(2_000);
    return answers.length === 0;
  });
  assert.deepEqual(await read, { agents: [] });
});

test('a refused request is not repeated, and a closed page makes no further requests', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const refusing = new Connection(async () => json({ error: { message: 'no' } }, 403));
  const stop = new AbortController();
  await assert.rejects(
    refusing.jsonAnswered('/api/agents', stop.signal),
    (error: unknown) => error instanceof RequestError && error.status === 403,
  );
  const busy = new Connection(async () => json({}, 503));
  const read = busy.jsonAnswered('/api/agents', stop.signal);
  stop.abort(new Error('gone'));
  await assert.rejects(read, /gone/);
});

test('a request without a response ends in time, as if nothing had answered', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const silent = new Connection((_path, { signal }) => {
    const { promise, reject } = Promise.withResolvers<Response>();
    signal!.addEventListener('abort', () => reject(signal!.reason));
    return promise;
  });
  const waiting = silent.json('/api/tasks');
  t.mock.timers.tick(HEAD_MS_MAX);
  await assert.rejects(waiting, UnreachableError);
  assert.match(silent.outage, /does not answer/);
  const stop = new AbortController();
  const stopped = silent.json('/api/tasks', { signal: stop.signal });
  stop.abort(new Error('gone'));
  await assert.rejects(stopped, /gone/);
});

test('a response that breaks or falls silent in its middle, even in a character, is read again', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const turn = () => new Promise(resolve => setImmediate(resolve));
  const bytes = new TextEncoder().encode('{"name":"é"}');
  const bodies = [
    new ReadableStream({ start: controller => controller.enqueue(bytes.subarray(0, 10)) }),
    new ReadableStream({
      start: controller => controller.enqueue(bytes.subarray(0, 10)),
      pull: controller => controller.error(new TypeError('network error')),
    }),
    new ReadableStream({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    }),
  ];
  const connection = new Connection(async path =>
    path.endsWith('agent-card.json') ? json({}, 502) : new Response(bodies.shift()!),
  );
  const read = connection.jsonAnswered('/api/agents', new AbortController().signal);
  await turn();
  t.mock.timers.tick(BODY_SILENCE_MS_MAX);
  await untilTick(() => {
    t.mock.timers.tick(2_000);
    return bodies.length === 0;
  });
  assert.deepEqual(await read, { name: 'é' });
});

test('a stream is not cut when its head has arrived', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let aborted = false;
  const connection = new Connection(async (_path, { signal }) => {
    signal!.addEventListener('abort', () => {
      aborted = true;
    });
    return new Response(new ReadableStream());
  });
  const page = new AbortController();
  await connection.open('/api/tasks/t:subscribe', { signal: page.signal });
  t.mock.timers.tick(HEAD_MS_MAX);
  assert.equal(aborted, false);
  page.abort();
  assert.equal(aborted, true);
});

test('a delay that the server asks for is obeyed, up to a minute', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const turn = () => new Promise(resolve => setImmediate(resolve));
  for (const [asked, waitMs] of [
    ['7', 7_000],
    ['86400', 60_000],
    ['soon', 2_000],
    ['Thu, 01 Jan 2026 00:00:09 GMT', 9_000],
  ] as const) {
    let requests = 0;
    const connection = new Connection(async () => {
      requests += 1;
      return requests > 1
        ? json({})
        : new Response('', { status: 429, headers: { 'retry-after': asked, date: 'Thu, 01 Jan 2026 00:00:00 GMT' } });
    });
    const read = connection.jsonAnswered('/api/agents', new AbortController().signal);
    await turn();
    t.mock.timers.tick(waitMs - 1);
    await turn();
    assert.equal(requests, 1);
    t.mock.timers.tick(1);
    await read;
  }
});

test('a browser that forbids a page to store anything signs in', t => {
  const forbidden = {
    get() {
      throw new DOMException('The operation is insecure.', 'SecurityError');
    },
  };
  Object.defineProperty(globalThis, 'sessionStorage', { ...forbidden, configurable: true });
  t.after(() => Reflect.deleteProperty(globalThis, 'sessionStorage'));
  const connection = new Connection();
  connection.signIn({ header: 'x-api-key', value: 'k' });
  assert.ok(connection.isSignedIn && connection.signsInByKey);
  connection.signIn(undefined);
  assert.ok(!connection.isSignedIn);
});
