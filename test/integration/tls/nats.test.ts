import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineServiceConfig } from '@hopline/lifecycle';
import { LOG_SETTINGS, type LogEvent, openFromSettings, openJetStreamLog } from '@hopline/log-jetstream';
import { createLogger } from '@hopline/telemetry';
import { succeeds } from '../../kit/succeeds.ts';
import { until } from '../../kit/until.ts';
import { startNats } from '../../support/nats/nats-server.ts';
import { createAuthority } from './certificates.ts';
import { createOperator } from './nats-operator.ts';

/** A refusal is tried again until then, and its reason has to be known by then. */
const OPEN_TIMEOUT_MS = 2_500;
const authority = createAuthority('Hopline test authority');
const config = defineServiceConfig(LOG_SETTINGS);
const logger = createLogger({ service: 'test', instance: 'test', level: 'silent' });

/** A server that requires TLS with client certificates, and paths of PEM files. */
async function startSecureNats(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'hopline-tls-'));
  t.after(() => rm(folder, { recursive: true }));
  const write = async (name: string, text: string) => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };
  const pair = async (name: string) => {
    const { cert, key } = authority.issue(name);
    return { cert: await write(`${name}.pem`, cert), key: await write(`${name}-key.pem`, key) };
  };
  const ca = await write('ca.pem', authority.cert);
  const other = await write('other.pem', createAuthority('Another authority').cert);
  const server = await pair('nats');
  const client = await pair('client');
  const tls = { cert_file: server.cert, key_file: server.key, ca_file: ca, verify: true };
  const nats = await startNats({ config: `tls ${JSON.stringify(tls)}` });
  t.after(() => nats.stop());
  return { nats, ca, other, client };
}

type Tls = { ca?: string; cert?: string; key?: string };

const open = (servers: string, tls?: Tls, openTimeoutMs = 60_000) =>
  openJetStreamLog({ servers, name: 'test', ...(tls && { tls }), openTimeoutMs });
const refused = (servers: string, reason: RegExp, tls?: Tls, message?: string) =>
  assert.rejects(open(servers, tls, OPEN_TIMEOUT_MS), reason, message);

test('the log works over TLS with an authority and a client certificate from settings [S4-42]', async t => {
  const { nats, ca, client } = await startSecureNats(t);
  const files = { NATS_TLS_CA_FILE: ca, NATS_TLS_CERT_FILE: client.cert, NATS_TLS_KEY_FILE: client.key };
  const log = await openFromSettings(config.load({ NATS_URL: nats.url, ...files }), { user: 'relay', name: 'test', logger });
  await log.check();
  await nats.restart();
  const works = () => succeeds(log.check());
  await until(works);
  await log.close();
});

test('a NATS server with an untrusted authority is rejected, and NATS rejects a client without a certificate [S4-42]', async t => {
  const { nats, ca, other, client } = await startSecureNats(t);
  await refused(nats.url, /certificate/, { ca: other, ...client });
  await refused(nats.url, /certificate/, undefined, 'default: authorities that Node trusts');
  await refused(nats.url, /does not answer within 5 s: .* network policy .* NATS_TLS_/, { ca });
  const log = await open(nats.url, { ca, ...client });
  await log.close();
});

test('a client that requires TLS never connects in plaintext [S4-42]', async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const reason = /does not support 'tls'/;
  await refused(nats.url.replace('nats:', 'tls:'), reason);
  await refused(nats.url, reason, {});
  await refused(`nats://127.0.0.1:${nats.port},TLS://127.0.0.1:${nats.port}`, reason);
  const log = await open(nats.url);
  await log.close();
});

test('errors name contradictory settings [S4-42]', async () => {
  const load = (env: Record<string, string>) => openFromSettings(config.load(env), { user: 'relay', name: 'test', logger });
  const paths = { NATS_TLS_CERT_FILE: 'c', NATS_TLS_KEY_FILE: 'k' };
  for (const [name, path] of Object.entries(paths)) await assert.rejects(load({ [name]: path }), /together, or neither/);
  const ways = { NATS_CREDS: 'c', NATS_CREDS_FILE: 'f', NATS_TOKEN: 't', NATS_USER: 'u' };
  const names = Object.keys(ways) as (keyof typeof ways)[];
  for (const [index, name] of names.entries()) {
    const next = names[(index + 1) % names.length]!;
    await assert.rejects(load({ [name]: ways[name], [next]: ways[next] }), /set at most one of/);
  }
});

test('a token, or a user and password, opens the log of a server that requires them', async t => {
  const token = await startNats({ config: 'authorization { token: "s3cret" }' });
  t.after(() => token.stop());
  const load = (env: Record<string, string>) => openFromSettings(config.load(env), { user: 'relay', name: 'test', logger });
  const log = await load({ NATS_URL: token.url, NATS_TOKEN: 's3cret' });
  await log.close();
  await assert.rejects(
    load({ NATS_URL: token.url, NATS_TOKEN: 'wrong' }),
    (error: Error) => /rejects the credentials/.test(error.message) && !error.message.includes('wrong'),
  );
});

test('a credentials file that is missing or incomplete during a reconnect does not end the log', {
  timeout: 120_000,
}, async t => {
  const folder = await mkdtemp(join(tmpdir(), 'hopline-creds-'));
  t.after(() => rm(folder, { recursive: true }));
  const operator = createOperator();
  const nats = await startNats({ config: operator.config });
  t.after(() => nats.stop());
  const path = join(folder, 'user.creds');
  await writeFile(path, operator.credentials());
  const events: LogEvent[] = [];
  const log = await openJetStreamLog({
    servers: nats.url,
    name: 'test',
    credentials: { credsFile: path },
    onEvent: event => events.push(event),
  });
  t.after(() => log.close());
  const reports = () => events.filter(event => event.type === 'check-failed' && event.what === 'NATS_CREDS_FILE').length;
  const reconnected = async () => {
    events.length = 0;
    await nats.restart();
    await until(() => reports() > 0, 'a report');
    await until(() => events.some(({ type }) => type === 'reconnected'), 'a connection with the previous credentials');
    await log.check();
  };
  await rm(path);
  await reconnected();
  await writeFile(path, operator.credentials().slice(0, 100));
  await reconnected();
  // The file is used again as soon as it is whole.
  await writeFile(path, operator.strangersCredentials());
  events.length = 0;
  await nats.restart();
  await until(() => events.some(({ type }) => type === 'server-error'), 'a rejection');
  await writeFile(path, operator.credentials());
  await until(() => events.some(({ type }) => type === 'reconnected'), 'a connection with the file');
});

test('a credentials file opens the log and is read at each connection; its content can be a setting', {
  timeout: 120_000,
}, async t => {
  const folder = await mkdtemp(join(tmpdir(), 'hopline-creds-'));
  t.after(() => rm(folder, { recursive: true }));
  const operator = createOperator();
  const nats = await startNats({ config: operator.config });
  t.after(() => nats.stop());
  const path = join(folder, 'user.creds');
  await writeFile(path, operator.credentials());
  const load = (env: Record<string, string>) => openFromSettings(config.load(env), { user: 'relay', name: 'test', logger });
  const text = await load({ NATS_URL: nats.url, NATS_CREDS: operator.credentials() });
  await text.close();
  // The shortest time, after which a service with other credentials would end.
  const log = await load({ NATS_URL: nats.url, NATS_CREDS_FILE: path, HOPLINE_NATS_REJECTED_MS: '1000' });
  const works = () => succeeds(log.check());
  assert.equal(await works(), true);
  await writeFile(path, operator.strangersCredentials());
  await nats.restart();
  for (const endsAtMs = performance.now() + 1_500; performance.now() < endsAtMs; ) {
    assert.equal(await works(), false, 'the current credentials are rejected');
    await sleep(100);
  }
  await writeFile(path, operator.credentials());
  await until(works);
  await log.close();
  await assert.rejects(
    load({ NATS_URL: nats.url, NATS_CREDS: operator.strangersCredentials() }),
    (error: Error) => /rejects the credentials/.test(error.message) && !error.message.includes('SEED'),
  );
  await assert.rejects(
    load({ NATS_URL: nats.url, NATS_CREDS: 'SECRET' }),
    /^ConfigError: NATS_CREDS_FILE or NATS_CREDS does not contain/,
  );
  await assert.rejects(load({ NATS_URL: nats.url, NATS_CREDS_FILE: join(folder, 'none') }), /ENOENT/);
});
