import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { until } from '../../../test/kit/until.ts';
import { type BadServerOptions, startBadServer, story } from './bad-server.test-kit.ts';
import { HoplineChatTransport } from './chat-transport.ts';
import { createClient } from './client.ts';
import type { StreamItem } from './stream-position.ts';
import type { ClientOptions } from './task-client.ts';

/** How a call ends when its caller has aborted it, has left it, or throws in a callback. */

const REASON = new Error('enough');
const isReason = (thrown: unknown) => thrown === REASON;

async function withServer(
  { client, ...options }: Partial<BadServerOptions> & { client?: Partial<ClientOptions> },
  use: (client: ReturnType<typeof createClient>, server: Awaited<ReturnType<typeof startBadServer>>) => Promise<void>,
): Promise<void> {
  const server = await startBadServer({ events: story(20), ...options });
  try {
    await use(createClient({ url: server.url, retry: { baseMs: 1, waitMsMax: 2 }, ...client }), server);
  } finally {
    await server.close();
  }
}

const quiet = () => ({ kind: 'silence', after: 1 }) as const;

test('an aborted call yields no event, although some have arrived', async () => {
  await withServer({}, async client => {
    const stop = new AbortController();
    const items: StreamItem[] = [];
    const reading = (async () => {
      for await (const item of client.stream('x', { signal: stop.signal })) {
        items.push(item);
        if (items.length === 2) stop.abort(REASON);
      }
    })();
    await assert.rejects(reading, isReason);
    assert.equal(items.length, 2);
    const other = new AbortController();
    const asked = client.ask('x', { signal: other.signal, onView: view => view.answer !== '' && other.abort(REASON) });
    await assert.rejects(asked, isReason);
  });
});

test('a call whose signal has already aborted sends nothing, and does not request headers', async () => {
  let asked = 0;
  const headers = () => {
    asked += 1;
    return new Promise<never>(() => {});
  };
  await withServer({ client: { headers } }, async (client, server) => {
    const signal = AbortSignal.abort(REASON);
    await assert.rejects(client.ask('x', { signal }), isReason);
    await assert.rejects(client.get('t', { signal }), isReason);
    await assert.rejects(client.card({ signal }), isReason);
    assert.deepEqual([asked, server.requests.length], [0, 0]);
  });
});

test('an abort ends a call whose fetch ignores the signal, before and within the response', async () => {
  const body = () => new ReadableStream({ start: stream => stream.enqueue(new TextEncoder().encode(': ok\n\n')) });
  const headers = { 'content-type': 'text/event-stream' };
  const fetches = [() => new Promise<Response>(() => {}), async () => new Response(body(), { headers })];
  for (const fetch of fetches) {
    const stop = new AbortController();
    const client = createClient({ url: 'http://127.0.0.1:9/', fetch });
    const asked = client.ask('x', { signal: stop.signal });
    setImmediate(() => stop.abort(REASON));
    await assert.rejects(asked, isReason);
  }
});

test('a response that comes after the abort is closed', async () => {
  const stop = new AbortController();
  let isClosed = false;
  const onCancel = () => {
    isClosed = true;
  };
  const body = new ReadableStream({ cancel: onCancel });
  const late = Promise.withResolvers<Response>();
  const client = createClient({ url: 'http://127.0.0.1:9/', fetch: () => late.promise });
  const asked = client.ask('x', { signal: stop.signal });
  setImmediate(() => stop.abort(REASON));
  await assert.rejects(asked, isReason);
  late.resolve(new Response(body));
  await until(() => isClosed);
});

test('an abort closes the connection even if the caller does not read further', async () => {
  await withServer({ fault: quiet }, async (client, server) => {
    const stop = new AbortController();
    await client.stream('x', { signal: stop.signal }).next();
    assert.equal(server.openResponses(), 1);
    stop.abort(REASON);
    await until(() => server.openResponses() === 0);
  });
});

test('calls with the signal of a whole process leave nothing behind', async () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const { signal } = new AbortController();
  const requests: WeakRef<AbortSignal>[] = [];
  const counted: typeof fetch = (input, init) => {
    requests.push(new WeakRef(init!.signal!));
    return fetch(input, init);
  };
  const headers = async () => ({ authorization: 'Bearer t' });
  await withServer({ client: { fetch: counted, headers } }, async client => {
    for (let asked = 0; asked < 50; asked += 1) await client.ask('x', { signal });
    assert.deepEqual(getEventListeners(signal, 'abort'), []);
    // Some of the newest are held by connections that are kept open.
    await until(() => {
      gc();
      return requests.filter(request => request.deref() !== undefined).length < 10;
    });
  });
});

test('return ends a stream at once, even while next is pending, and closes its connection', async () => {
  const steps = [{ end: 'stream' }, { end: 'subscribe' }, { end: 'watch' }] as const;
  for (const { end } of steps)
    await withServer({ fault: quiet }, async (client, server) => {
      const { signal } = new AbortController();
      const stream: AsyncGenerator<unknown, void, undefined> = client[end]('task-1', { signal });
      await stream.next();
      const waiting = stream.next();
      const done = { done: true, value: undefined };
      assert.deepEqual(await stream.return(), done);
      assert.deepEqual(await waiting, done);
      assert.deepEqual(await stream.next(), done);
      assert.deepEqual(getEventListeners(signal, 'abort'), []);
      await until(() => server.openResponses() === 0);
      assert.equal(server.requests.length, 1);
    });
});

test('a stream that is left before its first event has sent nothing', async () => {
  await withServer({}, async (client, server) => {
    const stream = client.stream('x');
    assert.deepEqual(await stream.return(), { done: true, value: undefined });
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
    assert.equal(server.requests.length, 0);
  });
});

test('a callback that throws ends the call with its error, and closes the connection', async () => {
  const fail = () => {
    throw REASON;
  };
  for (const callback of [{ onNotice: fail }, { onView: fail }])
    await withServer({ fault: quiet }, async (client, server) => {
      await assert.rejects(client.ask('x', callback), isReason);
      await until(() => server.openResponses() === 0);
    });
});

const chat = {
  trigger: 'submit-message',
  chatId: 'c',
  messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
} as const;

test('a chat that was stopped before its message is sent does not send it', async () => {
  await withServer({}, async (client, server) => {
    const transport = new HoplineChatTransport({ client });
    await assert.rejects(transport.sendMessages({ ...chat, abortSignal: AbortSignal.abort(REASON) }), isReason);
    assert.equal(server.requests.length, 0);
  });
});

test('a chat whose stream is already closed can be stopped without an unhandled rejection', async t => {
  const rejected = t.mock.fn();
  process.on('unhandledRejection', rejected);
  t.after(() => process.off('unhandledRejection', rejected));
  await withServer({}, async (client, server) => {
    const stop = new AbortController();
    const stream = await new HoplineChatTransport({ client }).sendMessages({ ...chat, abortSignal: stop.signal });
    await stream.cancel();
    stop.abort();
    // A rejection is reported in the turn of the event loop in which it happens.
    await new Promise(resolve => setImmediate(resolve));
    await new Promise(resolve => setImmediate(resolve));
    assert.deepEqual([rejected.mock.callCount(), server.requests.length], [0, 0]);
  });
});
