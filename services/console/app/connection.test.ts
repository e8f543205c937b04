import assert from 'node:assert/strict';
import { test } from 'node:test';
import { untilTick } from '../../../test/kit/until.ts';
import { Connection, RequestError } from './connection.ts';

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
