import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createAuthority, DAY_MS } from '../../../test/integration/tls/certificates.ts';
import { observeCertificates } from './certificate-expiry.ts';

type Read = () => readonly (readonly [number, { kind?: string | undefined }])[];

test('the end of each certificate is read from its file, even after a renewal', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'hopline-expiry-'));
  t.after(() => rm(folder, { recursive: true }));
  const authority = createAuthority('Test');
  const [old, renewed] = [authority.issue('old', undefined, -DAY_MS / 2), authority.issue('renewed')];
  const path = join(folder, 'tls.crt');
  await writeFile(path, old.cert);
  const reads: Read[] = [];
  const metrics = { certificateExpiry: { observe: (read: Read) => void reads.push(read) } };
  observeCertificates(metrics, { HOPLINE_TLS_CERT_FILE: path, NATS_TLS_CERT_FILE: join(folder, 'absent.crt') });
  const read = () => reads.flatMap(one => one());
  const secondsOf = (cert: string) => new X509Certificate(cert).validToDate.getTime() / 1_000;
  assert.deepEqual(read(), [[secondsOf(old.cert), { kind: 'server' }]]);
  await writeFile(`${path}.new`, `${renewed.cert}${authority.cert}`);
  await rename(`${path}.new`, path);
  assert.deepEqual(read(), [[secondsOf(renewed.cert), { kind: 'server' }]]);
  assert.notEqual(secondsOf(old.cert), secondsOf(renewed.cert));
  await writeFile(path, 'not a certificate');
  assert.deepEqual(read(), []);
});

test('without certificates nothing is observed', () => {
  observeCertificates({ certificateExpiry: { observe: () => assert.fail() } }, { HOPLINE_TLS_CERT_FILE: '' });
});
