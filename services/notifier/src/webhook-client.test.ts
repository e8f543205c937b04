import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { suite, test } from 'node:test';
import type { SecureContext } from 'node:tls';
import { promisify } from 'node:util';
import { AllowList, type Resolve } from '@hopline/webhook-guard';
import { listen } from '../../../test/kit/listen.ts';
import { REFUSED_ORIGIN } from '../../../test/kit/refused.ts';
import { until } from '../../../test/kit/until.ts';
import type { Trust } from './trusted-authorities.ts';
import { type AttemptOutcome, WebhookClient } from './webhook-client.ts';

const never = new AbortController().signal;
const LIMITS = { timeoutMs: 5_000, requestsMax: 4, hostRequestsMax: 2 };

/**
 * A server that counts connections. It listens on all addresses of both families, so that every spelling of this machine's address
 * reaches it.
 */
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
  const origin = await listen(server);
  const close = async () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: origin, [Symbol.asyncDispose]: close };
}

type ClientOptions = { allow?: string; resolve?: Resolve; limits?: Partial<typeof LIMITS> };

async function post(
  url: string,
  { allow = '', resolve, limits = {} }: ClientOptions = {},
  signal = never,
): Promise<AttemptOutcome> {
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
const forbidden = { kind: 'failed', reason: 'forbidden_address', retry: 'limited' };

suite('nothing is sent to this machine or a private network', () => {
  test("a URL with any spelling of this machine's address, or localhost, is refused", async () => {
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
    // The test's own name server resolves the name, as the hosts file would.
    for (const host of ['localhost', 'localhost.', 'a.localhost'])
      assert.deepEqual(
        await post(`http://${host}:${listening.port}/`, { resolve: names(['127.0.0.1', '::1']) }),
        forbidden,
        host,
      );
    assert.equal(listening.connections(), 0);
  });

  test('a name that resolves to a private address is refused, even next to a public one, mapped, by NAT64 or for metadata', async () => {
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

  test('rebinding: a name that is public at the first lookup and private when the socket opens is refused', async () => {
    await using listening = await trap();
    const resolve = names(['93.184.215.14'], ['127.0.0.1']);
    // The server makes the first lookup when the webhook is configured.
    assert.deepEqual(await resolve('hooks.example'), [at('93.184.215.14')]);
    assert.deepEqual(await post(`http://hooks.example:${listening.port}/`, { resolve }), forbidden);
    assert.equal(listening.connections(), 0);
  });

  test('a redirect to a private address is not followed and counts as a refusal', async () => {
    await using listening = await trap();
    for (const status of [301, 302, 303, 307, 308]) {
      await using webhook = await serve((_request, response) => {
        response.writeHead(status, { location: `http://127.0.0.2:${listening.port}/` }).end();
      });
      const outcome = await post(webhook.url, { allow: '127.0.0.1' });
      assert.deepEqual(outcome, { kind: 'failed', reason: 'http_3xx', status, retry: 'limited' });
    }
    assert.equal(listening.connections(), 0);
  });

  test('an allow-list permits only its entries', async () => {
    await using webhook = await serve((_request, response) => void response.end());
    await using listening = await trap();
    const { port } = new URL(webhook.url);
    assert.deepEqual(await post(webhook.url, { allow: '127.0.0.1' }), { kind: 'accepted', status: 200 });
    const byName = `http://hooks.internal:${port}/`;
    assert.deepEqual(await post(byName, { allow: 'hooks.internal', resolve: names(['127.0.0.1']) }), {
      kind: 'accepted',
      status: 200,
    });
    assert.deepEqual(await post(byName, { allow: '127.0.0.0/30', resolve: names(['127.0.0.1']) }), {
      kind: 'accepted',
      status: 200,
    });
    assert.deepEqual(await post(`http://127.0.0.2:${listening.port}/`, { allow: '127.0.0.1,hooks.internal' }), forbidden);
    assert.equal(listening.connections(), 0);
  });

  test('proxies of the environment are not used', { timeout: 120_000 }, async () => {
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
    assert.deepEqual(JSON.parse(stdout), { kind: 'accepted', status: 200 });
    assert.equal(proxy.connections(), 0);
  });
});

suite('responses of a webhook', () => {
  const answering = async (status: number, headers: Record<string, string> = {}) => {
    await using webhook = await serve((_request, response) => void response.writeHead(status, headers).end());
    return await post(webhook.url, { allow: '127.0.0.1' });
  };

  test('2xx is accepted; 5xx, 408, 425 and 429 are retried; other 4xx a few times; 410 never [S3-25]', async () => {
    for (const status of [200, 201, 202, 204, 299]) assert.deepEqual(await answering(status), { kind: 'accepted', status });
    for (const status of [500, 502, 503, 504])
      assert.deepEqual(await answering(status), { kind: 'failed', reason: 'http_5xx', status, retry: 'normal' });
    for (const status of [408, 425, 429])
      assert.deepEqual(await answering(status), { kind: 'failed', reason: 'http_4xx', status, retry: 'normal' });
    for (const status of [400, 401, 403, 404, 422])
      assert.deepEqual(await answering(status), { kind: 'failed', reason: 'http_4xx', status, retry: 'limited' });
    assert.deepEqual(await answering(410), { kind: 'failed', reason: 'http_4xx', status: 410, retry: 'never' });
    assert.deepEqual(await answering(503, { 'retry-after': '7' }), {
      kind: 'failed',
      reason: 'http_5xx',
      status: 503,
      retry: 'normal',
      retryAfterMs: 7_000,
    });
  });

  test('a date in Retry-After is by the clock of the webhook; a malformed one is ignored', { timeout: 120_000 }, async () => {
    const failed = { kind: 'failed', reason: 'http_5xx', status: 503, retry: 'normal' };
    const date = 'Thu, 01 Jan 2015 00:00:00 GMT';
    const later = await answering(503, { date, 'retry-after': 'Thu, 01 Jan 2015 00:01:00 GMT' });
    assert.deepEqual(later, { ...failed, retryAfterMs: 60_000 });
    assert.deepEqual(await answering(503, { 'retry-after': 'soon 5' }), failed);
  });

  test('a missing listener, a missing response and an aborted response are retried', { timeout: 120_000 }, async () => {
    const unreachable = (code: string) => ({ kind: 'failed', reason: 'unreachable', code, retry: 'normal' });
    assert.deepEqual(await post(REFUSED_ORIGIN, { allow: '127.0.0.1' }), unreachable('ECONNREFUSED'));
    await using silent = await serve(() => {});
    assert.deepEqual(await post(silent.url, { allow: '127.0.0.1', limits: { timeoutMs: 100 } }), {
      kind: 'failed',
      reason: 'timeout',
      retry: 'normal',
    });
    await using cut = await serve((_request, response) => void response.socket?.destroy());
    assert.deepEqual(await post(cut.url, { allow: '127.0.0.1' }), unreachable('UND_ERR_SOCKET'));
  });

  test('an endless body is not read, and does not change the outcome', { timeout: 120_000 }, async () => {
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
    assert.deepEqual(await post(endless.url, { allow: '127.0.0.1' }), { kind: 'accepted', status: 200 });
    assert.ok(written < 32 * 1024 * 1024, `${written} bytes`);
    await using dripping = await serve((_request, response) => void response.writeHead(200).write('.'));
    // The time limit includes the wait for the headers, which is short only on an idle machine.
    const isLate = (outcome: AttemptOutcome) => outcome.kind === 'failed' && outcome.reason === 'timeout';
    let timeoutMs = 100;
    let outcome = await post(dripping.url, { allow: '127.0.0.1', limits: { timeoutMs } });
    while (isLate(outcome) && timeoutMs < 10_000) {
      timeoutMs *= 2;
      outcome = await post(dripping.url, { allow: '127.0.0.1', limits: { timeoutMs } });
    }
    assert.deepEqual(outcome, { kind: 'accepted', status: 200 });
  });

  test('a token that a header cannot contain leads to an outcome, not an exception [C-21]', async () => {
    await using listening = await trap();
    const client = new WebhookClient({ http: true, allow: new AllowList('127.0.0.1') }, LIMITS);
    const headers = { authorization: 'Bearer a\r\nx-smuggled: 1' };
    const outcome = await client.post({ url: `http://127.0.0.1:${listening.port}/`, headers, body: () => '{}' }, never, never);
    await client.close();
    assert.deepEqual(outcome, { kind: 'failed', reason: 'unsendable', retry: 'never' });
    assert.equal(listening.connections(), 0);
  });

  test('unusable certificates fail the attempt, and the process continues', { timeout: 120_000 }, async () => {
    await using listening = await trap();
    const unusable: Trust[] = [async () => ({}) as SecureContext, () => Promise.reject(new Error('no certificates'))];
    for (const trust of unusable) {
      const client = new WebhookClient({ http: false, allow: new AllowList('127.0.0.1') }, LIMITS, { trust });
      const outcome = await client.post(
        { url: `https://127.0.0.1:${listening.port}/`, headers: {}, body: () => '{}' },
        never,
        never,
      );
      await client.close();
      assert.ok(
        outcome.kind === 'failed' && outcome.reason === 'unreachable' && outcome.retry === 'normal',
        JSON.stringify(outcome),
      );
    }
  });

  test('concurrent attempts to one host are bounded; an attempt that waits too long ends as busy, and a cancelled one stops', {
    timeout: 120_000,
  }, async () => {
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
    await until(() => held.length >= LIMITS.hostRequestsMax);
    assert.deepEqual(await client.post(what, AbortSignal.timeout(20), never), { kind: 'busy' });
    cut.abort();
    assert.deepEqual(await sent[1], { kind: 'aborted' });
    held[0]!();
    assert.deepEqual(await sent[0], { kind: 'accepted', status: 200 });
    assert.equal(most, LIMITS.hostRequestsMax);
    await client.close();
  });
});
