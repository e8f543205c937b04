import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { CallFailed, GrpcClient } from '@hopline/a2a-grpc/test-client';
import { freePort } from '@hopline/local-cluster';
import { until } from '../../kit/until.ts';
import { ServiceProcess } from '../../support/cluster/service-process.ts';
import { createStreams, startNats } from '../../support/nats/nats-server.ts';
import { createAuthority, DAY_MS } from './certificates.ts';
import { httpsGet } from './https-get.ts';

const UNAVAILABLE = 14;

const authority = createAuthority('Hopline test authority');
const next = createAuthority('The authority after it');

/** An ingress with TLS on both ports, and its gRPC address. */
async function startIngress(t: TestContext) {
  const nats = await startNats();
  await createStreams(nats.url);
  const folder = await mkdtemp(join(tmpdir(), 'hopline-tls-'));
  const write = async ({ cert, key }: { cert: string; key: string }) => {
    for (const [name, pem] of Object.entries({ cert, key })) {
      await writeFile(join(folder, `${name}.new`), pem);
      await rename(join(folder, `${name}.new`), join(folder, `${name}.pem`));
    }
  };
  await write(authority.issue('ingress'));
  const env = {
    NATS_URL: nats.url,
    HOPLINE_GRPC_PORT: '0',
    HOPLINE_TLS_CERT_FILE: join(folder, 'cert.pem'),
    HOPLINE_TLS_KEY_FILE: join(folder, 'key.pem'),
  };
  const ingress = new ServiceProcess({ service: 'ingress', instance: 'ingress-1', env }, await freePort());
  t.after(async () => {
    await ingress.kill();
    await nats.stop();
    await rm(folder, { recursive: true });
  });
  await ingress.start();
  const { body } = await httpsGet(`${ingress.url}/.well-known/agent-card.json`, { ca: authority.cert });
  const { supportedInterfaces } = JSON.parse(body) as { supportedInterfaces: { url: string; protocolBinding: string }[] };
  return { ingress, address: supportedInterfaces.find(one => one.protocolBinding === 'GRPC')!.url, write };
}

/** `ok`, or the gRPC code. Each call has its own connection, and so its own handshake. */
async function list(address: string, ca?: string): Promise<number | 'ok'> {
  const client = new GrpcClient(address, ca === undefined ? {} : { ca });
  try {
    await client.call('ListTasks', {}, { deadline: 5_000 });
    return 'ok';
  } catch (error) {
    assert.ok(error instanceof CallFailed, String(error));
    return error.code;
  } finally {
    client.close();
  }
}

test('with TLS settings gRPC serves TLS only, and loads a renewed certificate [S4-42]', async t => {
  const { ingress, address, write } = await startIngress(t);
  const { body } = await httpsGet(`${ingress.url}/metrics`, { ca: authority.cert });
  const [, expiry] = /^hopline_certificate_expiry_timestamp_seconds\{.*kind="server".*\} (\d+)$/m.exec(body) ?? assert.fail(body);
  const secondsLeft = Number(expiry) - Date.now() / 1_000;
  assert.ok(secondsLeft > 0 && secondsLeft < DAY_MS / 1_000, `${secondsLeft}`);
  assert.equal(await list(address, authority.cert), 'ok');
  assert.equal(await list(address, next.cert), UNAVAILABLE, 'a client that does not trust the certificate');
  assert.equal(await list(address), UNAVAILABLE, 'a client without TLS');
  await write(next.issue('ingress'));
  await until(async () => (await list(address, next.cert)) === 'ok', 'the renewed certificate is loaded');
});
