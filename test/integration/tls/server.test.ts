import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ENDPOINT_SETTINGS, TLS_HANDSHAKE_MS_MAX, tlsFromSettings } from '@hopline/endpoint';
import { defineServiceConfig } from '@hopline/lifecycle';
import { freePort } from '@hopline/local-cluster';
import { createLogger } from '@hopline/telemetry';
import { listen } from '../../kit/listen.ts';
import { until } from '../../kit/until.ts';
import { ServiceProcess } from '../../support/cluster/service-process.ts';
import { createStreams, startNats } from '../../support/nats/nats-server.ts';
import { type Certificate, createAuthority } from './certificates.ts';
import { type ClientTls, httpsGet } from './https-get.ts';

const authority = createAuthority('Hopline test authority');
const stranger = createAuthority('Another authority');
const config = defineServiceConfig(ENDPOINT_SETTINGS);

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'hopline-tls-'));
  t.after(() => rm(path, { recursive: true }));
  return path;
}

/** Writes the files of a server; returns its settings. */
async function files(path: string, { cert, key }: Certificate, clientCa?: string): Promise<Record<string, string>> {
  await writeFile(join(path, 'cert.pem'), cert);
  await writeFile(join(path, 'key.pem'), key);
  if (clientCa !== undefined) await writeFile(join(path, 'ca.pem'), clientCa);
  return {
    HOPLINE_TLS_CERT_FILE: join(path, 'cert.pem'),
    HOPLINE_TLS_KEY_FILE: join(path, 'key.pem'),
    ...(clientCa !== undefined && { HOPLINE_TLS_CLIENT_CA_FILE: join(path, 'ca.pem') }),
  };
}

async function serve(t: TestContext, env: Record<string, string>) {
  const lines: string[] = [];
  const logger = createLogger({
    service: 'server',
    instance: 'test',
    level: 'trace',
    destination: { write: line => lines.push(line) },
  });
  const tls = await tlsFromSettings(config.load(env), { logger });
  assert.ok(tls);
  const server = createServer(tls.options, (_request, response) => response.end('hello'));
  tls.keepFresh(server);
  await listen(server);
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const get = (client: ClientTls) => httpsGet(`https://127.0.0.1:${port}/`, client);
  return { get, lines, port };
}

test('the ingress serves HTTPS only, with a certificate that a client must trust [S4-42]', async t => {
  await using nats = await startNatsUntilDisposed();
  const env = { NATS_URL: nats.url, ...(await files(await folder(t), authority.issue('ingress'))) };
  const ingress = new ServiceProcess({ service: 'ingress', instance: 'ingress-1', env }, await freePort());
  t.after(() => ingress.kill());
  await ingress.start();
  const card = await httpsGet(`${ingress.url}/.well-known/agent-card.json`, { ca: authority.cert });
  assert.deepEqual([card.status, card.protocol], [200, 'TLSv1.3']);
  assert.equal((JSON.parse(card.body) as { url: string }).url, `${ingress.url}/`);
  assert.equal((await httpsGet(`${ingress.url}/readyz`, { ca: authority.cert })).status, 200);
  await assert.rejects(
    httpsGet(`${ingress.url}/readyz`, { ca: stranger.cert }),
    /UNABLE_TO_VERIFY|self-signed|unable to verify|unable to get/i,
  );
  await assert.rejects(fetch(`http://127.0.0.1:${ingress.port}/readyz`), { message: 'fetch failed' });
});

test('TLS 1.3 is preferred, 1.2 accepted, older versions rejected; a higher minimum applies [S4-42]', async t => {
  const env = await files(await folder(t), authority.issue('server'));
  const { get } = await serve(t, env);
  const ca = authority.cert;
  assert.equal((await get({ ca })).protocol, 'TLSv1.3');
  assert.equal((await get({ ca, maxVersion: 'TLSv1.2' })).protocol, 'TLSv1.2');
  await assert.rejects(get({ ca, maxVersion: 'TLSv1.1' }), /protocol version|alert/i);
  const strict = await serve(t, { ...env, HOPLINE_TLS_VERSION_MIN: 'TLSv1.3' });
  assert.equal((await strict.get({ ca })).protocol, 'TLSv1.3');
  await assert.rejects(strict.get({ ca, maxVersion: 'TLSv1.2' }), /protocol version|alert/i);
});

test('with a client authority, a client without its certificate is rejected [S4-42]', async t => {
  const { get } = await serve(t, await files(await folder(t), authority.issue('server'), authority.cert));
  const ca = authority.cert;
  assert.equal((await get({ ca, ...authority.issue('client') })).status, 200);
  await assert.rejects(get({ ca }), /certificate required|ECONNRESET|socket hang up/i);
  await assert.rejects(get({ ca, ...stranger.issue('client') }), /unknown ca|ECONNRESET|socket hang up|certificate/i);
});

test('a new certificate takes effect without a restart; one that does not match its key is ignored', {
  timeout: 120_000,
}, async t => {
  const path = await folder(t);
  const first = authority.issue('server');
  const { get, lines } = await serve(t, await files(path, first));
  const { serial } = await get({ ca: authority.cert });
  const second = authority.issue('server');
  await writeFile(join(path, 'cert.pem'), second.cert);
  await until(() => lines.join('').includes('certificate and key do not match'));
  assert.equal((await get({ ca: authority.cert })).serial, serial);
  await writeFile(join(path, 'key.pem'), second.key);
  await until(async () => (await get({ ca: authority.cert })).serial !== serial);
  assert.doesNotMatch(lines.join(''), /BEGIN/);
});

test('a connection without a handshake is closed in time', async t => {
  const { port } = await serve(t, await files(await folder(t), authority.issue('server')));
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  await once(socket, 'connect');
  const startedMs = performance.now();
  await once(socket.resume(), 'close');
  const tookMs = performance.now() - startedMs;
  assert.ok(tookMs >= TLS_HANDSHAKE_MS_MAX - 50 && tookMs < TLS_HANDSHAKE_MS_MAX + 15_000, `${tookMs} ms`);
});

test('errors name the setting of an unusable file, never its content', async t => {
  const path = await folder(t);
  const { key } = authority.issue('server');
  const { cert } = authority.issue('another');
  const logger = createLogger({ service: 'server', instance: 'test', level: 'silent' });
  const open = (env: Record<string, string>) => tlsFromSettings(config.load(env), { logger });
  const env = await files(path, { cert, key });
  await assert.rejects(open(env), /^Error: HOPLINE_TLS_CERT_FILE and its key cannot be used: ERR_OSSL_X509_KEY_VALUES_MISMATCH$/);
  await assert.rejects(
    open({ ...env, HOPLINE_TLS_KEY_FILE: join(path, 'none') }),
    /^Error: HOPLINE_TLS_KEY_FILE: the file cannot be read/,
  );
  await writeFile(join(path, 'cert.pem'), 'SECRET');
  await assert.rejects(
    open(env),
    (error: Error) => error.message.startsWith('HOPLINE_TLS_CERT_FILE') && !error.message.includes('SECRET'),
  );
});

async function startNatsUntilDisposed() {
  const nats = await startNats();
  await createStreams(nats.url);
  return { url: nats.url, [Symbol.asyncDispose]: () => nats.stop() };
}
