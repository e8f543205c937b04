import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createPlainServer } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { consoleConfig } from '../../../services/console/src/config.ts';
import { IngressConnection } from '../../../services/console/src/ingress-connection.ts';
import { createAuthority, DAY_MS } from './certificates.ts';

test('the console trusts only the authorities of its file, reads them again, and never falls back to plain text', async t => {
  const authority = createAuthority('Authority');
  const other = createAuthority('Another authority');
  const folder = await mkdtemp(join(tmpdir(), 'hopline-console-'));
  t.after(() => rm(folder, { recursive: true }));
  const ca = join(folder, 'ca.crt');
  await writeFile(ca, other.cert);
  const server = createServer(authority.issue('ingress'), (request, response) => {
    request.resume();
    response.writeHead(200, { connection: 'close' }).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const ingress = new IngressConnection(`https://127.0.0.1:${port}/`, ca);
  t.after(() => ingress.close());
  const check = () => ingress.check(AbortSignal.timeout(10_000));

  await assert.rejects(check(), /the certificate of ingress is not trusted \([A-Z_]+\)/);
  await writeFile(ca, authority.cert);
  await check();
  server.setSecureContext(authority.issue('ingress', ['ingress.example.com']));
  await assert.rejects(check(), /the certificate of ingress is for another name/);
  server.setSecureContext(authority.issue('ingress', undefined, -2 * DAY_MS));
  await assert.rejects(check(), /the certificate of ingress has expired/);
  server.setSecureContext(authority.issue('ingress'));
  await check();
  await rm(ca);
  await assert.rejects(check(), /HOPLINE_CONSOLE_INGRESS_CA_FILE cannot be read/);

  const requests: string[] = [];
  const plain = createPlainServer((request, response) => {
    requests.push(request.url!);
    response.end('{}');
  });
  plain.listen(0, '127.0.0.1');
  await once(plain, 'listening');
  t.after(() => plain.close());
  await writeFile(ca, authority.cert);
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
