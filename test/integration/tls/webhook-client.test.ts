import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { createLogger } from '@hopline/telemetry';
import { AllowList } from '../../../packages/webhook-guard/src/index.ts';
import { openTrust, type Trust } from '../../../services/notifier/src/trusted-authorities.ts';
import { type AttemptOutcome, WebhookClient } from '../../../services/notifier/src/webhook-client.ts';
import { listen } from '../../kit/listen.ts';
import { until } from '../../kit/until.ts';
import { type Certificate, createAuthority, DAY_MS } from './certificates.ts';

const NAME = 'hooks.example';
const LIMITS = { timeoutMs: 10_000, requestsMax: 4, hostRequestsMax: 2 };
const never = new AbortController().signal;

const authority = createAuthority('Hopline test authority');
const stranger = createAuthority('Another authority');

/** A webhook with one certificate on this machine. `seen`: SNI, Host header and remote address of each request. */
async function serve(t: TestContext, certificate: Certificate, answer: RequestListener = (_request, response) => response.end()) {
  const seen: { sni: unknown; host: string | undefined; from: string | undefined }[] = [];
  const server = createServer(certificate, (request, response) => {
    const { servername, remoteAddress } = request.socket as TLSSocket & { servername?: string | false };
    seen.push({ sni: servername, host: request.headers.host, from: remoteAddress });
    answer(request, response);
  });
  await listen(server);
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: (server.address() as AddressInfo).port, seen };
}

async function caFile(t: TestContext, first: string) {
  const folder = await mkdtemp(join(tmpdir(), 'hopline-webhook-ca-'));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, 'ca.pem');
  const write = async (text: string) => {
    await writeFile(`${path}.new`, text);
    await rename(`${path}.new`, path);
  };
  await write(first);
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const logger = createLogger({ service: 'notifier', instance: 'test', level: 'info', destination });
  return { write, lines, open: () => openTrust({ path, logger, recheckMs: 10 }) };
}

type ClientOptions = { trust?: Trust; allow?: string };

function clientOf(
  t: TestContext,
  { trust, allow = `${NAME},127.0.0.1` }: ClientOptions,
): (url: string) => Promise<AttemptOutcome> {
  const resolve = async () => [{ address: '127.0.0.1', family: 4 }];
  const rules = { http: false, allow: new AllowList(allow) };
  const client = new WebhookClient(rules, LIMITS, { ...(trust && { trust }), resolve });
  t.after(() => client.close());
  const headers = { authorization: 'Bearer PLANTED', 'content-type': 'application/json' };
  return url => client.post({ url, headers, body: () => '{}' }, never, never);
}

const taken = { kind: 'accepted', status: 200 };
const untrusted = (code: string) => ({ kind: 'failed', reason: 'certificate', code, retry: 'normal' });

test('delivers to a webhook of a private authority; SNI and Host come from the URL, the socket goes to the checked address', async t => {
  const trust = await (await caFile(t, `made for a test\n${stranger.cert}${authority.cert}`)).open();
  const webhook = await serve(t, authority.issue('webhook', [NAME]));
  const post = clientOf(t, { trust });
  assert.deepEqual(await post(`https://${NAME}:${webhook.port}/path`), taken);
  assert.deepEqual(webhook.seen, [{ sni: NAME, host: `${NAME}:${webhook.port}`, from: '127.0.0.1' }]);
});

test('for an address in a URL there is no SNI, and the certificate must name the address', async t => {
  const trust = await (await caFile(t, authority.cert)).open();
  const post = clientOf(t, { trust });
  const webhook = await serve(t, authority.issue('webhook', ['127.0.0.1']));
  assert.deepEqual(await post(`https://127.0.0.1:${webhook.port}/`), taken);
  assert.deepEqual(webhook.seen, [{ sni: false, host: `127.0.0.1:${webhook.port}`, from: '127.0.0.1' }]);
  const named = await serve(t, authority.issue('127.0.0.1', [NAME]));
  assert.deepEqual(await post(`https://127.0.0.1:${named.port}/`), untrusted('ERR_TLS_CERT_ALTNAME_INVALID'));
});

test('nothing is sent to a webhook with an untrusted, misnamed, expired or future certificate, and a retry is possible', async t => {
  const trust = await (await caFile(t, authority.cert)).open();
  const cases: [certificate: Certificate, code: string, trust?: Trust][] = [
    [stranger.issue('webhook', [NAME]), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', trust],
    [authority.issue('webhook', [NAME]), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    [authority.issue(NAME, ['other.example', '127.0.0.1']), 'ERR_TLS_CERT_ALTNAME_INVALID', trust],
    [authority.issue('webhook', [NAME], -2 * DAY_MS), 'CERT_HAS_EXPIRED', trust],
    [authority.issue('webhook', [NAME], 2 * DAY_MS), 'CERT_NOT_YET_VALID', trust],
  ];
  for (const [certificate, code, trusted] of cases) {
    const webhook = await serve(t, certificate);
    const post = clientOf(t, trusted ? { trust: trusted } : {});
    assert.deepEqual(await post(`https://${NAME}:${webhook.port}/`), untrusted(code));
    assert.deepEqual(webhook.seen, [], code);
  }
});

test('nothing is sent to a server without TLS behind an https URL', async t => {
  let sent = '';
  const server = createTcpServer(socket => {
    socket.setEncoding('latin1').on('error', () => {});
    socket.on('data', (text: string) => {
      sent += text;
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    });
  });
  await listen(server);
  t.after(() => server.close());
  const outcome = await clientOf(t, {})(`https://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  assert.deepEqual(outcome, { kind: 'failed', reason: 'unreachable', code: 'ERR_SSL_WRONG_VERSION_NUMBER', retry: 'normal' });
  assert.doesNotMatch(sent, /PLANTED/);
});

test('a redirect from https to an address of this machine is not followed, with any scheme', async t => {
  const trust = await (await caFile(t, authority.cert)).open();
  let connections = 0;
  const trap = createTcpServer(socket => {
    connections += 1;
    socket.destroy();
  });
  await listen(trap);
  t.after(() => trap.close());
  const { port } = trap.address() as AddressInfo;
  const post = clientOf(t, { trust });
  for (const location of [`https://127.0.0.1:${port}/`, `http://127.0.0.1:${port}/`, `//127.0.0.1:${port}/`]) {
    const webhook = await serve(t, authority.issue('webhook', [NAME]), (_request, response) => {
      response.writeHead(307, { location }).end();
    });
    const outcome = await post(`https://${NAME}:${webhook.port}/`);
    assert.deepEqual(outcome, { kind: 'failed', reason: 'http_3xx', status: 307, retry: 'limited' });
  }
  assert.equal(connections, 0);
});

test('a changed file of authorities is read again: a removed authority is no longer trusted', async t => {
  const file = await caFile(t, authority.cert);
  const trust = await file.open();
  const webhook = await serve(t, authority.issue('webhook', [NAME]), (_request, response) => {
    // Each request opens a connection, and so makes a handshake.
    response.writeHead(200, { connection: 'close' }).end();
  });
  const post = clientOf(t, { trust });
  const url = `https://${NAME}:${webhook.port}/`;
  const becomes = async (expected: object) => {
    const outcome = await until(async () => {
      const outcome = await post(url);
      return outcome.kind === (expected as AttemptOutcome).kind && outcome;
    }, JSON.stringify(expected));
    assert.deepEqual(outcome, expected);
  };
  assert.deepEqual([await post(url), await post(url)], [taken, taken]);
  await file.write('-----BEGIN CERTIFICATE-----\nPLANTED\n-----END CERTIFICATE-----\n');
  while (file.lines.length === 0) assert.deepEqual(await post(url), taken);
  await file.write(stranger.cert);
  await becomes(untrusted('UNABLE_TO_VERIFY_LEAF_SIGNATURE'));
  await file.write(authority.cert);
  await becomes(taken);
  assert.equal(file.lines.length, 1);
  assert.match(file.lines[0]!, /HOPLINE_WEBHOOK_CA_FILE changed and is unusable; the previous certificates stay in force/);
  assert.doesNotMatch(file.lines[0]!, /PLANTED/);
});

test('a file of authorities that contains none is rejected at the start', async t => {
  const broken = authority.cert.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA');
  for (const text of ['', 'PLANTED', broken, authority.cert + broken, authority.issue('x').key]) {
    const file = await caFile(t, text);
    await assert.rejects(file.open(), {
      message: 'HOPLINE_WEBHOOK_CA_FILE: the file contains no PEM certificate, or a malformed one',
    });
  }
});
