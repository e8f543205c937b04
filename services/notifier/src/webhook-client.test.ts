import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { suite, test } from 'node:test';
import { promisify } from 'node:util';
import { AllowList, type Resolve } from '@hopline/webhook-guard';
import { type Outcome, retryAfterMs, WebhookClient } from './webhook-client.ts';

const never = new AbortController().signal;
const LIMITS = { timeoutMs: 5_000, requestsMax: 4, hostRequestsMax: 2 };

/** A socket on this machine that counts who comes. Bound to all addresses of both families, so that no spelling of this machine misses it. */
async function trap() {
  let connections = 0;
  const server = createTcpServer(socket => {
    connections += 1;
    socket.destroy();
  });
  server.listen(0);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}

async function serve(listener: RequestListener) {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, [Symbol.asyncDispose]: close };
}

type ClientOptions = { allow?: string; resolve?: Resolve; limits?: Partial<typeof LIMITS> };

async function post(url: string, { allow = '', resolve, limits = {} }: ClientOptions = {}, signal = never): Promise<Outcome> {
  const client = new WebhookClient({ http: true, allow: new AllowList(allow) }, { ...LIMITS, ...limits }, resolve && { resolve });
  try {
    return await client.post({ url, headers: { 'content-type': 'application/json' }, body: () => '{}' }, never, signal);
  } finally {
    await client.close();
  }
}

const at = (address: string): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 });
const names =
  (...answers: string[][]): Resolve =>
  async () =>
    (answers.length > 1 ? answers.shift()! : answers[0]!).map(at);
const forbidden = { kind: 'failed', reason: 'forbidden_address', chance: 'little' };

suite('nothing is sent to this machine or a private network', () => {
  test('an address in any spelling, and localhost', async () => {
    await using listening = await trap();
    const hosts = [
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f000001',
      '0177.0.0.1',
      '127.0.0.1.',
      '0.0.0.0',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[::]',
    ];
    for (const host of hosts) assert.deepEqual(await post(`http://${host}:${listening.port}/`), forbidden, host);
    // The test's own name server answers for the name, as the hosts file would.
    for (const host of ['localhost', 'localhost.', 'a.localhost'])
      assert.deepEqual(
        await post(`http://${host}:${listening.port}/`, { resolve: names(['127.0.0.1', '::1']) }),
        forbidden,
        host,
      );
    assert.equal(listening.connections(), 0);
  });

  test('a name that leads there, also beside a public address, mapped, by NAT64 or to metadata', async () => {
    await using listening = await trap();
    for (const answer of [
      ['127.0.0.1'],
      ['93.184.215.14', '127.0.0.1'],
      ['::ffff:7f00:1'],
      ['64:ff9b::7f00:1'],
      ['169.254.169.254'],
      ['10.0.0.1'],
      ['fd00::1'],
      ['fe80::1'],
    ])
      assert.deepEqual(
        await post(`http://hooks.example:${listening.port}/`, { resolve: names(answer) }),
        forbidden,
        answer.join(),
      );
    assert.equal(listening.connections(), 0);
  });

  test('rebinding: a name that was public when it was looked at, and is not when the socket is opened', async () => {
    await using listening = await trap();
    const resolve = names(['93.184.215.14'], ['127.0.0.1']);
    // Somebody, a door for one, has looked the name up before and found it public.
    assert.deepEqual(await resolve('hooks.example'), [at('93.184.215.14')]);
    assert.deepEqual(await post(`http://hooks.example:${listening.port}/`, { resolve }), forbidden);
    assert.equal(listening.connections(), 0);
  });

  test('a redirect there is not followed: it is a refusal', async () => {
    await using listening = await trap();
    for (const status of [301, 302, 303, 307, 308]) {
      await using webhook = await serve((_request, response) => {
        response.writeHead(status, { location: `http://127.0.0.2:${listening.port}/` }).end();
      });
      const outcome = await post(webhook.url, { allow: '127.0.0.1' });
      assert.deepEqual(outcome, { kind: 'failed', reason: 'http_3xx', status, chance: 'little' });
    }
    assert.equal(listening.connections(), 0);
  });

  test('an allow-list lets in what it names and nothing beside it', async () => {
    await using webhook = await serve((_request, response) => void response.end());
    await using listening = await trap();
    const { port } = new URL(webhook.url);
    assert.deepEqual(await post(webhook.url, { allow: '127.0.0.1' }), { kind: 'taken', status: 200 });
    const byName = `http://hooks.internal:${port}/`;
    assert.deepEqual(await post(byName, { allow: 'hooks.internal', resolve: names(['127.0.0.1']) }), {
      kind: 'taken',
      status: 200,
    });
    assert.deepEqual(await post(byName, { allow: '127.0.0.0/30', resolve: names(['127.0.0.1']) }), {
      kind: 'taken',
      status: 200,
    });
    assert.deepEqual(await post(`http://127.0.0.2:${listening.port}/`, { allow: '127.0.0.1,hooks.internal' }), forbidden);
    assert.equal(listening.connections(), 0);
  });

  test('proxies of the environment are not used', { timeout: 30_000 }, async () => {
    await using proxy = await trap();
    await using webhook = await serve((_request, response) => void response.end());
    const script = `
      import { AllowList } from '@hopline/webhook-guard';
      import { WebhookClient } from './webhook-client.ts';
      const limits = ${JSON.stringify(LIMITS)};
      const client = new WebhookClient({ http: true, allow: new AllowList('127.0.0.1') }, limits);
      const never = new AbortController().signal;
      const outcome = await client.post({ url: '${webhook.url}', headers: {}, body: () => '{}' }, never, never);
      await client.close();
      process.stdout.write(JSON.stringify(outcome));`;
    const url = `http://127.0.0.1:${proxy.port}`;
    const env = { HTTP_PROXY: url, http_proxy: url, HTTPS_PROXY: url, ALL_PROXY: url, NODE_USE_ENV_PROXY: '1' };
    const run = promisify(execFile);
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], { env, cwd: import.meta.dirname });
    assert.deepEqual(JSON.parse(stdout), { kind: 'taken', status: 200 });
    assert.equal(proxy.connections(), 0);
  });
});

suite('what a webhook answers', () => {
  const answering = async (status: number, headers: Record<string, string> = {}) => {
    await using webhook = await serve((_request, response) => void response.writeHead(status, headers).end());
    return await post(webhook.url, { allow: '127.0.0.1' });
  };

  test('2xx is taken; 5xx, 408, 425, 429 later; other 4xx hardly; 410 never [S3-25]', async () => {
    for (const status of [200, 201, 202, 204, 299]) assert.deepEqual(await answering(status), { kind: 'taken', status });
    for (const status of [500, 502, 503, 504])
      assert.deepEqual(await answering(status), { kind: 'failed', reason: 'http_5xx', status, chance: 'later' });
    for (const status of [408, 425, 429])
      assert.deepEqual(await answering(status), { kind: 'failed', reason: 'http_4xx', status, chance: 'later' });
    for (const status of [400, 401, 403, 404, 422])
      assert.deepEqual(await answering(status), { kind: 'failed', reason: 'http_4xx', status, chance: 'little' });
    assert.deepEqual(await answering(410), { kind: 'failed', reason: 'http_4xx', status: 410, chance: 'none' });
    assert.deepEqual(await answering(503, { 'retry-after': '7' }), {
      kind: 'failed',
      reason: 'http_5xx',
      status: 503,
      chance: 'later',
      retryAfterMs: 7_000,
    });
  });

  test('Retry-After: seconds, a date, or nothing that is understood', () => {
    const now = Date.parse('2026-01-01T00:00:00Z');
    assert.equal(retryAfterMs('120', now), 120_000);
    assert.equal(retryAfterMs('Thu, 01 Jan 2026 00:01:00 GMT', now), 60_000);
    assert.equal(retryAfterMs('Thu, 01 Jan 2015 00:00:00 GMT', now), 0);
    for (const value of ['', 'soon', '-1.5e', ['1', '2'], undefined]) assert.equal(retryAfterMs(value, now), undefined);
  });

  test('nobody there, an answer that never comes, one that breaks off', { timeout: 30_000 }, async () => {
    const gone = await serve(() => {});
    await gone[Symbol.asyncDispose]();
    const unreachable = (code: string) => ({ kind: 'failed', reason: 'unreachable', code, chance: 'later' });
    assert.deepEqual(await post(gone.url, { allow: '127.0.0.1' }), unreachable('ECONNREFUSED'));
    await using silent = await serve(() => {});
    assert.deepEqual(await post(silent.url, { allow: '127.0.0.1', limits: { timeoutMs: 100 } }), {
      kind: 'failed',
      reason: 'timeout',
      chance: 'later',
    });
    await using cut = await serve((_request, response) => void response.socket?.destroy());
    assert.deepEqual(await post(cut.url, { allow: '127.0.0.1' }), unreachable('UND_ERR_SOCKET'));
  });

  test('a body without end is not read, and does not take the status back', { timeout: 30_000 }, async () => {
    let written = 0;
    await using endless = await serve((_request, response) => {
      response.writeHead(200);
      const more = (): void => {
        if (response.destroyed) return;
        written += 64 * 1024;
        if (response.write(Buffer.alloc(64 * 1024))) setImmediate(more);
        else response.once('drain', more);
      };
      more();
    });
    assert.deepEqual(await post(endless.url, { allow: '127.0.0.1' }), { kind: 'taken', status: 200 });
    assert.ok(written < 32 * 1024 * 1024, `${written} bytes`);
    await using dripping = await serve((_request, response) => void response.writeHead(200).write('.'));
    assert.deepEqual(await post(dripping.url, { allow: '127.0.0.1', limits: { timeoutMs: 100 } }), {
      kind: 'taken',
      status: 200,
    });
  });

  test('a token that no header can hold is not sent, and never thrown about [C-21]', async () => {
    await using listening = await trap();
    const client = new WebhookClient({ http: true, allow: new AllowList('127.0.0.1') }, LIMITS);
    const headers = { authorization: 'Bearer a\r\nx-smuggled: 1' };
    const outcome = await client.post({ url: `http://127.0.0.1:${listening.port}/`, headers, body: () => '{}' }, never, never);
    await client.close();
    assert.deepEqual(outcome, { kind: 'failed', reason: 'unsendable', chance: 'none' });
    assert.equal(listening.connections(), 0);
  });

  test('so many to one host at a time; who has no patience is told so, who is cut stops', { timeout: 30_000 }, async () => {
    let inFlight = 0;
    let most = 0;
    const held: (() => void)[] = [];
    await using webhook = await serve((_request, response) => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      held.push(() => {
        inFlight -= 1;
        response.end();
      });
    });
    const client = new WebhookClient({ http: true, allow: new AllowList('127.0.0.1') }, LIMITS);
    const what = { url: webhook.url, headers: {}, body: () => '{}' };
    const cut = new AbortController();
    const sent = [client.post(what, never, never), client.post(what, never, cut.signal)];
    while (held.length < LIMITS.hostRequestsMax) await new Promise(resolve => setTimeout(resolve, 5));
    assert.deepEqual(await client.post(what, AbortSignal.timeout(20), never), { kind: 'busy' });
    cut.abort();
    assert.deepEqual(await sent[1], { kind: 'aborted' });
    held[0]!();
    assert.deepEqual(await sent[0], { kind: 'taken', status: 200 });
    assert.equal(most, LIMITS.hostRequestsMax);
    await client.close();
  });
});
