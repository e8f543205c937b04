import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { DIALECTS, OPERATIONS, type Operation } from '@hopline/a2a';
import type { Limits } from '@hopline/a2a-server';
import fc from 'fast-check';
import { Exchange, type Sent } from './exchange.ts';
import { runs } from './fuzz-settings.ts';
import { hostileFields } from './header-fields.ts';
import { assertHarmless, restOutcome, rpcOutcome } from './invariants.ts';
import { HOSTILE } from './json-tree.ts';
import { type MemoryServers, openMemoryServers, PAGE_ORIGIN } from './memory-servers.ts';
import { filled, WAITING } from './placeholders.ts';
import { sendRaw } from './raw-connection.ts';

const RUNS_OF_HEADERS = 300;
const RUNS_OF_BYTES = 150;

async function open(t: TestContext, limits: Partial<Limits> = {}): Promise<{ servers: MemoryServers; exchange: Exchange }> {
  const servers = await openMemoryServers(t, { limits });
  const exchange = new Exchange();
  t.after(() => exchange.close());
  return { servers, exchange };
}

const json = { 'content-type': 'application/json' };

test('any headers get a response, and both replicas give the same one [S4-33]', async t => {
  const { servers, exchange } = await open(t);
  const { replicas } = servers;
  const get = '{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"TASK-WAITING"}}';
  const targets: Sent[] = [
    { method: 'POST', path: '/', headers: { ...json, 'a2a-version': '1.0' }, body: get },
    { method: 'GET', path: '/tasks/TASK-WAITING', headers: { 'a2a-version': '1.0' } },
    { method: 'GET', path: '/v1/tasks/TASK-WAITING' },
    { method: 'GET', path: '/tasks/TASK-WAITING:subscribe', headers: { 'a2a-version': '1.0' } },
    { method: 'GET', path: '/.well-known/agent-card.json' },
    { method: 'GET', path: '/openapi.json' },
    { method: 'OPTIONS', path: '/tasks' },
    { method: 'OPTIONS', path: '/tasks', headers: { origin: PAGE_ORIGIN, 'access-control-request-method': 'POST' } },
    { method: 'GET', path: '/tasks', headers: { origin: PAGE_ORIGIN, 'a2a-version': '1.0' } },
  ];
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...targets), hostileFields, async (target, fields) => {
      const known = await servers.known();
      const path = filled(target.path, known);
      const body = target.body && filled(target.body as string, known);
      const sent = { ...target, path, body, headers: { ...target.headers, ...fields } };
      const about = JSON.stringify(sent);
      const [first, second] = await Promise.all(replicas.map(({ url }) => exchange.send(url, sent)));
      for (const received of [first!, second!]) {
        assertHarmless(received, received.status < 300, about);
        const isPage = sent.headers.origin === PAGE_ORIGIN;
        assert.equal(received.headers['access-control-allow-origin'], isPage ? PAGE_ORIGIN : undefined, about);
      }
      assert.equal(first!.status, second!.status, about);
    }),
    runs(RUNS_OF_HEADERS),
  );
  await servers.settled();
  for (const { lines } of replicas) assert.doesNotMatch(JSON.stringify(lines), /request failed/);
});

const HEAD = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n';
const BODY = '{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"id":"x"}}';

/** All HTTP/1.x statuses received on a connection. */
function statusesOf(text: string): number[] {
  return [...text.matchAll(/^HTTP\/1\.\d (\d{3})/gm)].map(([, status]) => Number(status));
}

test('malformed and ambiguous request bytes are rejected or dropped in time, and the server continues [S4-33]', async t => {
  const { servers, exchange } = await open(t);
  const { url } = servers.replicas[0];
  const before = servers.writes();
  const whole = Buffer.from(`${HEAD}content-length: ${BODY.length}\r\n\r\n${BODY}`);
  const damaged = fc
    .tuple(fc.nat(whole.length), fc.uint8Array({ maxLength: 8 }))
    .map(([at, bytes]) => Buffer.concat([whole.subarray(0, at), bytes, whole.subarray(at + bytes.length)]));
  const judge = async (bytes: string | Uint8Array) => {
    const about = JSON.stringify(Buffer.from(bytes).toString('latin1').slice(0, 500));
    const text = await sendRaw(url, typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    for (const status of statusesOf(text)) assert(status < 500, `${about}: ${text.slice(0, 500)}`);
    assert.doesNotMatch(text, /node_modules|\.ts:\d|at async|PLANTED/, about);
  };
  await fc.assert(
    fc.asyncProperty(
      fc.oneof({ weight: 3, arbitrary: damaged }, { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) }),
      judge,
    ),
    runs(RUNS_OF_BYTES),
  );
  assert.equal(servers.writes(), before);
  assert.equal((await exchange.send(url, { method: 'GET', path: '/openapi.json' })).status, 200);
  await servers.settled();
  assert.deepEqual(
    servers.replicas.flatMap(({ lines }) => lines),
    [],
  );
});

test('bodies that are not JSON text (gzip, other character encodings, half a character) are rejected with their reason [S4-29]', async t => {
  const { servers, exchange } = await open(t);
  const { url } = servers.replicas[0];
  const bodies: [about: string, body: Uint8Array, headers?: Record<string, string>][] = [
    ['declared gzip', gzipSync(BODY), { 'content-encoding': 'gzip' }],
    ['gzip', gzipSync(BODY)],
    ['UTF-16', Buffer.from(BODY, 'utf16le')],
    ['a byte order mark', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(BODY)])],
    ['Latin 1', Buffer.from(BODY.replace('"x"', '"\u00e9"'), 'latin1')],
    ['an overlong slash', Buffer.concat([Buffer.from('"'), Buffer.from([0xc0, 0xaf]), Buffer.from('"')])],
    ['half a character', Buffer.concat([Buffer.from('{"id":"'), Buffer.from([0xf0, 0x9f])])],
    ['cut', Buffer.from(BODY.slice(0, -1))],
    ['twice', Buffer.from(BODY + BODY)],
    ['nothing', new Uint8Array(0)],
    ['a NUL', Buffer.concat([Buffer.from(BODY), Uint8Array.of(0)])],
  ];
  for (const [about, body, headers] of bodies) {
    const rpc = await exchange.send(url, { method: 'POST', path: '/', headers: { ...json, ...headers }, body });
    const expected = about === 'declared gzip' ? 'CONTENT_TYPE_NOT_SUPPORTED' : 'PARSE_ERROR';
    assert.equal((await rpcOutcome(rpc, undefined, about)).reason, expected, about);
    const rest = { method: 'POST', path: '/message:send', headers: { ...json, 'a2a-version': '1.0', ...headers }, body };
    const { reason } = await restOutcome(await exchange.send(url, rest), about);
    assert.equal(reason, body.length === 0 ? 'INVALID_PARAMS' : expected, about);
  }
});

/** Heap growth allowed for two thousand rejected requests, for compiled code and pooled buffers, in bytes. */
const HEAP_GROWTH_MAX = 8 * 1024 * 1024;
const REFUSED = 2_000;

function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

test('two thousand rejected requests leave no stream, no subscription and no memory behind', async t => {
  const { servers, exchange } = await open(t);
  const { url } = servers.replicas[0];
  const operations: Operation[] = OPERATIONS.filter(one => one !== 'extendedCard');
  const refuse = async (n: number) => {
    const method = DIALECTS['1.0'].methods[operations[n % operations.length]!];
    const value = HOSTILE[n % HOSTILE.length]!;
    const body = `{"jsonrpc":"2.0","id":7,"method":"${method}","params":{"id":"unknown${n}","taskId":${value},"message":{"messageId":"${n}","taskId":"unknown${n}","role":"ROLE_USER","parts":[{"text":"x","url":"x","data":${value}}]},"status":${value},"pageToken":7}}`;
    const received = await exchange.send(url, { method: 'POST', path: '/', headers: { ...json, 'a2a-version': '1.0' }, body });
    assert.equal((await rpcOutcome(received, undefined, body)).accepted, false, body);
  };
  for (let n = 0; n < REFUSED / 4; n += 1) await refuse(n);
  await servers.settled();
  const [heap, writes] = [heapUsed(), servers.writes()];
  for (let n = 0; n < REFUSED; n += 1) await refuse(n);
  await servers.settled();
  const growth = heapUsed() - heap;
  t.diagnostic(`${growth} bytes`);
  assert(growth < HEAP_GROWTH_MAX, `${growth} bytes`);
  assert.equal(servers.writes(), writes);
});

test('a client disconnect closes a stream at both ends', async t => {
  const { servers, exchange } = await open(t);
  const { waiting } = await servers.known();
  const subscribe = {
    method: 'GET',
    path: `/tasks/${filled(WAITING, { waiting, ended: '' })}:subscribe`,
    headers: { 'a2a-version': '1.0' },
  };
  const all = await Promise.all(
    servers.replicas.flatMap(({ url }) => Array.from({ length: 8 }, () => exchange.send(url, subscribe))),
  );
  for (const { status, isStream } of all) assert.deepEqual([status, isStream], [200, true]);
  await servers.settled();
});
