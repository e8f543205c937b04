import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { defineServiceConfig } from '@hopline/lifecycle';
import { freePort } from '@hopline/local-cluster';
import { LOG_SETTINGS, openFromSettings, openJetStreamLog } from '@hopline/log-jetstream';
import { createLogger } from '@hopline/telemetry';
import { succeeds } from '../../kit/succeeds.ts';
import { until } from '../../kit/until.ts';
import { type NatsServer, startNats } from '../../support/nats/nats-server.ts';
import { type Authority, createAuthority, DAY_MS } from './certificates.ts';

const RELOAD = fileURLToPath(new URL('../../../infra/nats/reload.ts', import.meta.url));
/** A refusal is tried again until then, and its reason has to be known by then. */
const OPEN_TIMEOUT_MS = 2_500;
const config = defineServiceConfig(LOG_SETTINGS);
const logger = createLogger({ service: 'test', instance: 'test', level: 'silent' });

/** A mounted Secret. As with the kubelet, its files are links into a folder, which a renewal replaces in one step. */
class MountedSecret {
  readonly path: string;
  #version = 0;

  constructor(t: TestContext) {
    this.path = mkdtempSync(join(tmpdir(), 'hopline-secret-'));
    t.after(() => rmSync(this.path, { recursive: true }));
    for (const name of ['ca.crt', 'tls.crt', 'tls.key']) symlinkSync(join('..data', name), join(this.path, name));
  }

  /** `trusted`: PEM of authorities. */
  renew(authority: Authority, subject: string, trusted: string, hosts?: string[], shiftMs?: number): void {
    const { cert, key } = authority.issue(subject, hosts, shiftMs);
    this.write({ 'ca.crt': trusted, 'tls.crt': cert, 'tls.key': key });
  }

  write(files: Readonly<Record<string, string>>): void {
    this.#version += 1;
    const folder = `..${this.#version}`;
    mkdirSync(join(this.path, folder));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.path, folder, name), text);
    symlinkSync(folder, join(this.path, '..new'));
    renameSync(join(this.path, '..new'), join(this.path, '..data'));
  }

  file(name: string): string {
    return join(this.path, name);
  }
}

/** A server as the chart configures it, whose monitoring port shows the certificate of each client. */
async function startSecureNats(t: TestContext, secret: MountedSecret) {
  const monitor = await freePort();
  const pid = join(secret.path, 'nats.pid');
  const tls = {
    cert_file: secret.file('tls.crt'),
    key_file: secret.file('tls.key'),
    ca_file: secret.file('ca.crt'),
    verify: true,
  };
  const text = `tls ${JSON.stringify(tls)}\nhttp: "127.0.0.1:${monitor}"\npid_file: ${JSON.stringify(pid)}`;
  const nats = await startNats({ config: text });
  t.after(() => nats.stop());
  const subjects = async () => {
    const response = await fetch(`http://127.0.0.1:${monitor}/connz?auth=true`);
    const { connections } = (await response.json()) as { connections: { tls_peer_certs?: { subject: string }[] }[] };
    return connections.map(({ tls_peer_certs: certs = [] }) => certs[0]?.subject);
  };
  return { nats, text, pid, subjects };
}

function settingsOf({ url }: NatsServer, secret: MountedSecret): Record<string, string> {
  return {
    NATS_URL: url,
    NATS_TLS_CA_FILE: secret.file('ca.crt'),
    NATS_TLS_CERT_FILE: secret.file('tls.crt'),
    NATS_TLS_KEY_FILE: secret.file('tls.key'),
  };
}

const open = (env: Record<string, string>) => openFromSettings(config.load(env), { user: 'relay', name: 'test', logger });
const works = (log: { check(): Promise<unknown> }) => succeeds(log.check());

test('a client reconnects with its renewed certificate, and trusts a renewed authority, without a restart', {
  timeout: 120_000,
}, async t => {
  const first = createAuthority('First authority');
  const second = createAuthority('Second authority');
  const [server, client] = [new MountedSecret(t), new MountedSecret(t)];
  server.renew(first, 'nats', first.cert);
  client.renew(first, 'client 1', first.cert);
  const { nats, text, subjects } = await startSecureNats(t, server);
  const log = await open(settingsOf(nats, client));
  assert.deepEqual(await subjects(), ['CN=client 1']);

  client.renew(first, 'client 2', first.cert);
  assert.deepEqual(await subjects(), ['CN=client 1'], 'an open connection keeps its certificate');
  await nats.restart();
  await until(() => works(log));
  assert.deepEqual(await subjects(), ['CN=client 2']);

  // The server trusts only the second authority from here on.
  server.renew(second, 'nats', second.cert);
  client.renew(second, 'client 3', second.cert);
  await nats.reload(text);
  assert.equal(await works(log), true, 'a reload cuts no connection');
  assert.deepEqual(await subjects(), ['CN=client 2']);
  await nats.restart();
  await until(() => works(log));
  assert.deepEqual(await subjects(), ['CN=client 3']);
  await log.close();
});

test('after its certificate has expired a client loses NATS at its next connection, and returns when it is renewed', {
  timeout: 120_000,
}, async t => {
  const authority = createAuthority('Authority');
  const [server, client] = [new MountedSecret(t), new MountedSecret(t)];
  server.renew(authority, 'nats', authority.cert);
  client.renew(authority, 'client 1', authority.cert);
  const { nats, subjects } = await startSecureNats(t, server);
  const log = await open(settingsOf(nats, client));
  client.renew(authority, 'expired', authority.cert, undefined, -2 * DAY_MS);
  assert.equal(await works(log), true, 'an open connection outlives the certificate');
  await nats.restart();
  const end = performance.now() + 1_500;
  while (performance.now() < end) {
    assert.equal(await works(log), false);
    await sleep(100);
  }
  client.renew(authority, 'client 2', authority.cert);
  await until(() => works(log));
  assert.deepEqual(await subjects(), ['CN=client 2']);
  await log.close();
});

test('a server of another authority, of another name, or with an expired certificate is refused', async t => {
  const authority = createAuthority('Authority');
  const other = createAuthority('Another authority');
  const [server, client] = [new MountedSecret(t), new MountedSecret(t)];
  client.renew(authority, 'client', authority.cert);
  const both = authority.cert + other.cert;
  server.renew(other, 'nats', both);
  const { nats, text } = await startSecureNats(t, server);
  const { NATS_TLS_CA_FILE: ca, NATS_TLS_CERT_FILE: cert, NATS_TLS_KEY_FILE: key } = settingsOf(nats, client);
  const tls = { ca: ca!, cert: cert!, key: key! };
  const refused = async (sentence: RegExp) => {
    const opening = openJetStreamLog({ servers: nats.url, name: 'test', tls, openTimeoutMs: OPEN_TIMEOUT_MS });
    await assert.rejects(opening, ({ message }: Error) => {
      assert.match(message, sentence);
      assert.doesNotMatch(message, /\n/);
      return true;
    });
  };
  await refused(/^NATS at \S+ has a certificate of an authority that is not trusted \(.+\): check NATS_TLS_CA_FILE$/);
  server.renew(authority, 'nats', both, ['nats.example.com']);
  await nats.reload(text);
  await refused(/^NATS at \S+ has a certificate for another name: .+$/);
  server.renew(authority, 'nats', both, undefined, -2 * DAY_MS);
  await nats.reload(text);
  await refused(/^NATS at \S+ has a certificate that has expired: renew it$/);
});

test('the container next to nats-server has it read a renewed certificate, and waits for the key that belongs to it', {
  timeout: 120_000,
}, async t => {
  const first = createAuthority('First authority');
  const second = createAuthority('Second authority');
  const [server, client] = [new MountedSecret(t), new MountedSecret(t)];
  server.renew(first, 'nats', first.cert);
  client.renew(second, 'client', second.cert);
  const { nats, pid } = await startSecureNats(t, server);
  const program = spawn(process.execPath, [RELOAD, pid, server.path], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => program.kill());
  let lines = '';
  program.stdout.setEncoding('utf8').on('data', (text: string) => {
    lines += text;
  });
  await until(() => /signal sent/.test(lines));
  const env = settingsOf(nats, client);
  const tls = { ca: env.NATS_TLS_CA_FILE!, cert: env.NATS_TLS_CERT_FILE!, key: env.NATS_TLS_KEY_FILE! };
  await assert.rejects(openJetStreamLog({ servers: nats.url, name: 'test', tls, openTimeoutMs: OPEN_TIMEOUT_MS }), /not trusted/);

  const { cert } = second.issue('nats');
  server.write({ 'ca.crt': second.cert, 'tls.crt': cert, 'tls.key': second.issue('nats').key });
  await until(() => /cannot be used yet: ERR_OSSL_X509_KEY_VALUES_MISMATCH/.test(lines));
  assert.equal(lines.match(/signal sent/g)?.length, 1);

  server.renew(second, 'nats', second.cert);
  // Retries until the server has read it.
  const log = await openJetStreamLog({ servers: nats.url, name: 'test', tls });
  await log.check();
  await log.close();
  await until(() => lines.match(/signal sent/g)?.length === 2);
  program.kill();
  await once(program, 'exit');
});

test('the nodes of a cluster reach each other only with a certificate of their authority', { timeout: 120_000 }, async t => {
  const authority = createAuthority('Authority');
  const other = createAuthority('Another authority');
  const ports = [await freePort(), await freePort(), await freePort()];
  const monitors = [await freePort(), await freePort(), await freePort()];
  const routes = ports.map(port => `"nats://route:secret@127.0.0.1:${port}"`).join(', ');
  const nodes = [];
  for (const [index, port] of ports.entries()) {
    const secret = new MountedSecret(t);
    // The third node has the password and a certificate, but not of this authority.
    secret.renew(index === 2 ? other : authority, `node ${index}`, authority.cert);
    const files = { cert_file: secret.file('tls.crt'), key_file: secret.file('tls.key'), ca_file: secret.file('ca.crt') };
    const tls = JSON.stringify({ ...files, verify: true });
    const cluster = `cluster { name: c, listen: "127.0.0.1:${port}", authorization { user: route, password: secret }, tls ${tls}, routes: [${routes}] }`;
    const text = `server_name: n${index}\n${cluster}\nhttp: "127.0.0.1:${monitors[index]}"`;
    const nats = await startNats({ config: text, withoutJetStream: true });
    t.after(() => nats.stop());
    nodes.push({ nats, secret, text });
  }
  const peers = async (index: number) => {
    const response = await fetch(`http://127.0.0.1:${monitors[index]}/routez`);
    const { routes: found } = (await response.json()) as { routes: { remote_name: string }[] };
    return [...new Set(found.map(route => route.remote_name))].sort();
  };
  await until(async () => (await peers(0)).length > 0);
  // The third node tries once a second.
  await sleep(3_000);
  assert.deepEqual([await peers(0), await peers(1), await peers(2)], [['n1'], ['n0'], []]);
  const [, , third] = nodes;
  third!.secret.renew(authority, 'node 2', authority.cert);
  await third!.nats.reload(third!.text);
  await until(async () => (await peers(2)).length === 2);
});
