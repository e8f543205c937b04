import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Authority, createAuthority } from '../integration/tls/certificates.ts';
import { findBinary } from '../support/nats/nats-server.ts';
import { missingPrograms } from './cluster.ts';
import { Release } from './release.ts';
import { CHART, type Manifest, manifestsOf, podSpecs, render, skip, template } from './rendered-chart.ts';

const TIMEOUT_MS = 600_000;
const missing = missingPrograms();
const options = { skip: missing ?? false, timeout: TIMEOUT_MS };
const SERVICES = ['ingress', 'relay', 'supervisor', 'notifier', 'sub-agent', 'sub-agent'];

const authority = createAuthority('Authority of the test');

type Spec = { secretName: string; dnsNames?: string[]; usages?: string[]; isCA?: boolean; issuerRef: object };
const certificates = (manifests: readonly Manifest[]) =>
  manifests
    .filter(({ kind }) => kind === 'Certificate')
    .map(({ spec }) => spec as unknown as Spec)
    .filter(({ isCA }) => !isCA);
const natsConf = (manifests: readonly Manifest[]) => manifests.find(({ data }) => data?.['nats.conf'])!.data!['nats.conf']!;

test('one value requires TLS of every connection between pods, with certificates for the names that the services use', {
  skip,
}, () => {
  const manifests = render(['tls.enabled=true', 'console.enabled=true']);
  const names = new Map(certificates(manifests).map(({ secretName, dnsNames = [] }) => [secretName, dnsNames]));
  assert.deepEqual([...names.keys()].sort(), ['hopline-clients-tls', 'hopline-ingress-tls', 'hopline-nats-tls']);
  const found = [];
  for (const { containers, volumes = [] } of podSpecs(manifests)) {
    const env = new Map(containers[0]!.env?.map(({ name, value }) => [name, value]));
    const url = env.get('NATS_URL');
    if (url === undefined) continue;
    found.push(containers[0]!.args![0]);
    for (const one of url.split(',')) {
      assert.match(one, /^tls:/);
      assert.ok(names.get('hopline-nats-tls')!.includes(new URL(one).hostname), one);
    }
    const mount = containers[0]!.volumeMounts!.find(({ name }) => name === 'nats-tls') as unknown as { mountPath: string };
    for (const [variable, file] of [
      ['NATS_TLS_CA_FILE', 'ca.crt'],
      ['NATS_TLS_CERT_FILE', 'tls.crt'],
      ['NATS_TLS_KEY_FILE', 'tls.key'],
    ] as const)
      assert.equal(env.get(variable), join(mount.mountPath, file));
    assert.deepEqual(volumes.find(({ name }) => name === 'nats-tls')!.secret, { secretName: 'hopline-clients-tls' });
  }
  assert.deepEqual(found.sort(), [...SERVICES].sort());
  const tls = /tls \{ cert_file: \S+, key_file: \S+, ca_file: \S+, verify: true, timeout: 5 \}/g;
  assert.equal(natsConf(manifests).match(tls)?.length, 2, 'clients and routes');

  const pod = podSpecs(manifests).find(({ containers }) => containers[0]!.args?.[0] === 'console')!;
  const env = new Map(pod.containers[0]!.env!.map(({ name, value }) => [name, value]));
  const { protocol, hostname } = new URL(env.get('HOPLINE_CONSOLE_INGRESS_URL')!);
  assert.equal(protocol, 'https:');
  assert.ok(names.get('hopline-ingress-tls')!.includes(hostname), hostname);
  assert.equal(env.get('HOPLINE_CONSOLE_INGRESS_CA_FILE'), '/var/run/hopline/ingress-tls/ca.crt');
  const items = [{ key: 'ca.crt', path: 'ca.crt' }];
  const volume = pod.volumes!.find(({ name }) => name === 'ingress-tls');
  assert.deepEqual(volume!.secret, { secretName: 'hopline-ingress-tls', items }, 'the console has no key of ingress');
});

test('the client certificate of the services cannot serve, so that no service can act as NATS or ingress', { skip }, () => {
  const usages = Object.fromEntries(
    certificates(render(['tls.enabled=true'])).map(one => [one.secretName, one.usages!.slice(2)]),
  );
  assert.deepEqual(usages, {
    'hopline-nats-tls': ['server auth', 'client auth'],
    'hopline-clients-tls': ['client auth'],
    'hopline-ingress-tls': ['server auth'],
  });
});

test('without the value nothing of TLS is rendered, and cert-manager is not needed', { skip }, () => {
  const manifests = render(['console.enabled=true']);
  assert.ok(manifests.every(({ kind }) => kind !== 'Certificate' && kind !== 'Issuer'));
  assert.doesNotMatch(JSON.stringify(manifests), /tls:\/\/|NATS_TLS|https:|nats-reload/);
});

test('certificates come from an issuer of the platform, or from existing Secrets without cert-manager', { skip }, () => {
  const issuer = ['tls.issuerRef.name=platform', 'tls.issuerRef.kind=ClusterIssuer'];
  const issued = render(['tls.enabled=true', ...issuer]);
  assert.ok(issued.every(({ kind }) => kind !== 'Issuer'));
  for (const { issuerRef } of certificates(issued))
    assert.deepEqual(issuerRef, { name: 'platform', kind: 'ClusterIssuer', group: 'cert-manager.io' });
  const given = ['tls.natsSecret=n', 'tls.clientsSecret=c', 'ingress.tlsSecret=i'];
  const existing = render(['tls.enabled=true', 'console.enabled=true', ...given]);
  assert.ok(existing.every(({ kind }) => kind !== 'Certificate' && kind !== 'Issuer'));
  const secrets = new Set(
    podSpecs(existing).flatMap(({ volumes = [] }) =>
      volumes.flatMap(({ secret }) => (secret as { secretName: string } | undefined)?.secretName ?? []),
    ),
  );
  assert.deepEqual([...secrets].sort(), ['c', 'i', 'n']);
  const { stderr } = spawnSync('helm', template(['tls.enabled=true', 'tls.natsSecret=n']), { encoding: 'utf8' });
  assert.match(stderr, /tls\.natsSecret and tls\.clientsSecret: set both, or neither/);
});

test('nats-server accepts the configuration of the chart with TLS', { skip }, t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-chart-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const manifests = render(['tls.enabled=true']);
  const { cert, key } = authority.issue('nats');
  for (const [name, text] of Object.entries({ 'ca.crt': authority.cert, 'tls.crt': cert, 'tls.key': key }))
    writeFileSync(join(folder, name), text);
  const text = natsConf(manifests).replace('$POD_NAME', 'n').replace('/data', folder).replaceAll('/etc/nats-tls', folder);
  writeFileSync(join(folder, 'nats.conf'), text);
  const variables = podSpecs(manifests)
    .flatMap(({ containers }) => containers.filter(({ image }) => image.startsWith('nats:')))
    .flatMap(({ env = [] }) => env.map(({ name, value = 'secret' }) => [name, value]));
  const args = ['-t', '-c', join(folder, 'nats.conf')];
  const { status, stderr } = spawnSync(findBinary(), args, { env: Object.fromEntries(variables), encoding: 'utf8' });
  assert.equal(status, 0, stderr);
});

test('an agent of its own release uses TLS to the NATS of that Hopline, with its password', { skip }, () => {
  const values = ['tls.enabled=true', 'entry.adapter=a2a', 'entry.url=http://a/', 'name=guide'];
  const args = template(values, join(CHART, '../hopline-agent'));
  const [pod] = podSpecs(manifestsOf(execFileSync('helm', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })));
  const env = new Map(pod!.containers[0]!.env!.map(({ name, value }) => [name, value]));
  assert.deepEqual([env.get('NATS_URL'), env.get('NATS_USER')], ['tls://hopline-nats:4222', 'agent']);
  assert.ok(certificates(render(['tls.enabled=true'])).some(({ dnsNames }) => dnsNames?.includes('hopline-nats')));
  assert.deepEqual(pod!.volumes!.find(({ name }) => name === 'nats-tls')!.secret, { secretName: 'hopline-clients-tls' });
});

const release = new Release('tls');

async function putSecret(name: string, issuer: Authority, hosts: string[], subject = name): Promise<void> {
  const { cert, key } = issuer.issue(subject, hosts);
  const stringData = { 'ca.crt': authority.cert, 'tls.crt': cert, 'tls.key': key };
  await release.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData });
}

const NATS_NAMES = ['hopline-nats', 'hopline-nats-0.hopline-nats', 'localhost', '127.0.0.1'];

before(
  async () => {
    if (missing) return;
    await release.createNamespace();
    await putSecret('nats-tls', authority, NATS_NAMES);
    await putSecret('clients-tls', authority, ['services']);
    const ingress = `hopline-ingress.${release.namespace}.svc`;
    await putSecret('ingress-tls', authority, ['hopline-ingress', ingress, 'localhost', '127.0.0.1']);
    const tls = { enabled: true, natsSecret: 'nats-tls', clientsSecret: 'clients-tls' };
    const console = { enabled: true, writes: true };
    // Here only TLS refuses the strangers, because a network policy would already stop them.
    const networkPolicy = { enabled: false };
    const ingressValues = { tlsSecret: 'ingress-tls', replicas: 1 };
    await release.upgrade({ tls, console, networkPolicy, ingress: ingressValues, nats: { replicas: 1 } });
  },
  { timeout: TIMEOUT_MS },
);

after(async () => {
  if (!missing) await release.close();
});

/** Connects to NATS in the cluster, as a service would, and prints the outcome. `clients`: the Secret of the client certificate. */
function dial(name: string, tls: string): Promise<string> {
  const script = `
    const net = require('node:net'), { connect } = require('node:tls');
    const socket = net.connect(4222, 'hopline-nats');
    socket.once('data', info => {
      const options = ${tls};
      if (options === undefined) {
        socket.on('data', data => console.log(String(data).trim())).on('error', ({ code }) => console.log(code));
        socket.on('close', () => { console.log('closed'); process.exit(); });
        return socket.write('CONNECT {}\\r\\nPING\\r\\n');
      }
      const secure = connect({ socket, servername: 'hopline-nats', ...options });
      secure.on('error', error => { console.log(error.code); process.exit(); });
      secure.on('data', data => { console.log(String(data).trim()); process.exit(); });
      secure.on('close', () => process.exit());
      secure.write('CONNECT {}\\r\\nPING\\r\\n');
    });`;
  return release.runScript(name, script);
}

test('a question asked at ingress, and one asked through the console, are answered over TLS', options, async () => {
  assert.match(await release.helm('test', 'hopline', '--timeout', '180s'), /Phase:\s+Succeeded/);
  const script = `fetch('http://hopline-console:8090/api/tasks?pageSize=5', { headers: { 'a2a-version': '1.0' } })
    .then(async answer => console.log(answer.status, (await answer.text()).includes('TASK_STATE_COMPLETED')))`;
  assert.equal(await release.runScript('console', script), '200 true\n');
});

test('NATS refuses a plain connection, one without a certificate, and one of another authority', options, async () => {
  const pem = JSON.stringify(authority.cert);
  const stranger = createAuthority('Stranger').issue('services');
  const pair = authority.issue('services');
  const withPair = ({ cert, key }: { cert: string; key: string }) => JSON.stringify({ ca: authority.cert, cert, key });
  const plain = await dial('plain', 'undefined');
  assert.match(plain, /^closed$/m);
  assert.doesNotMatch(plain, /PONG/);
  assert.match(await dial('without', `{ ca: ${pem} }`), /ERR_SSL|ECONNRESET/);
  assert.match(await dial('stranger', withPair(stranger)), /ERR_SSL|ECONNRESET/);
  // The certificate does not replace the password.
  assert.match(await dial('own', withPair(pair)), /^-ERR 'Authorization Violation'/m);
});

test('ingress refuses plain HTTP, and a client that does not trust its authority refuses ingress', options, async () => {
  const ask = (address: string) =>
    `fetch('${address}').then(({ status }) => status, ({ cause }) => cause.code).then(console.log)`;
  assert.doesNotMatch(await release.runScript('http', ask('http://hopline-ingress:8000/tasks')), /^\d/);
  assert.match(await release.runScript('https', ask('https://hopline-ingress:8000/tasks')), /^(UNABLE|SELF_SIGNED|DEPTH)/);
});

test('NATS takes a renewed certificate without a restart', options, async () => {
  await putSecret('nats-tls', authority, NATS_NAMES, 'renewed');
  const subject = `{ ca: ${JSON.stringify(authority.cert)}, checkServerIdentity: (host, { subject }) => { console.log(subject.CN); process.exit(); } }`;
  // The kubelet copies a changed Secret within about a minute.
  for (let tries = 0; !(await dial(`renewed-${tries}`, subject)).includes('renewed'); tries += 1) assert.ok(tries < 60);
  const restarts = 'jsonpath={.status.containerStatuses[*].restartCount}';
  assert.equal(await release.kubectl('get', 'pod/hopline-nats-0', '--output', restarts), '0 0');
});
