import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createPlainServer } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { consoleConfig } from '../../../services/console/src/config.ts';
import { IngressConnection } from '../../../services/console/src/ingress-connection.ts';
import { listen } from '../../kit/listen.ts';
import { createAuthority, DAY_MS } from './certificates.ts';

/** An ingress with HTTPS, whose certificate can be replaced, and a console that trusts the authorities in the file `ca`. */
async function consoleOf(t: TestContext) {
  const authority = createAuthority('Authority');
  const folder = await mkdtemp(join(tmpdir(), 'hopline-console-'));
  t.after(() => rm(folder, { recursive: true }));
  const ca = join(folder, 'ca.crt');
  await writeFile(ca, authority.cert);
  const server = createServer(authority.issue('ingress'), (request, response) => {
    request.resume();
    response.writeHead(200, { connection: 'close' }).end('{}');
  });
  await listen(server);
  t.after(() => server.close());
  const ingress = new IngressConnection(`https://127.0.0.1:${(server.address() as AddressInfo).port}/`, ca);
  t.after(() => ingress.close());
  return { authority, ca, server, check: () => ingress.check(AbortSignal.timeout(10_000)) };
}

test('the console trusts only the authorities of its file, and reads it again', async t => {
  const { authority, ca, check } = await consoleOf(t);
  await writeFile(ca, createAuthority('Another authority').cert);
  await assert.rejects(check(), /the certificate of ingress is not trusted \([A-Z_]+\)/);
  await writeFile(ca, authority.cert);
  await check();
  await rm(ca);
  await assert.rejects(check(), /HOPLINE_CONSOLE_INGRESS_CA_FILE cannot be read/);
});

test('the console refuses a certificate for another name', async t => {
  const { authority, server, check } = await consoleOf(t);
  server.setSecureContext(authority.issue('ingress', ['ingress.example.com']));
  await assert.rejects(check(), /the certificate of ingress is for another name/);
});

test('the console refuses an expired certificate, and accepts a renewed one', async t => {
  const { authority, server, check } = await consoleOf(t);
  server.setSecureContext(authority.issue('ingress', undefined, -2 * DAY_MS));
  await assert.rejects(check(), /the certificate of ingress has expired/);
  server.setSecureContext(authority.issue('ingress'));
  await check();
});

test('the console never falls back to plain text', async t => {
  const { ca } = await consoleOf(t);
  const requests: string[] = [];
  const plain = createPlainServer((request, response) => {
    requests.push(request.url!);
    response.end('{}');
  });
  await listen(plain);
  t.after(() => plain.close());
  const toPlain = new IngressConnection(`https://127.0.0.1:${(plain.address() as AddressInfo).port}/`, ca);
  t.after(() => toPlain.close());
  await assert.rejects(toPlain.check(AbortSignal.timeout(10_000)), /ingress does not answer/);
  assert.deepEqual(requests, []);
});

test('authorities for an ingress without TLS are refused', () => {
  const load = (url: string) =>
    consoleConfig.load({ HOPLINE_CONSOLE_INGRESS_URL: url, HOPLINE_CONSOLE_INGRESS_CA_FILE: '/ca.crt' });
  assert.throws(() => load('http://127.0.0.1:8000/'), /HOPLINE_CONSOLE_INGRESS_CA_FILE needs an https address/);
  load('https://127.0.0.1:8000/');
});
