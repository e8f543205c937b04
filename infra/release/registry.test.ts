import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { list } from 'tar';
import { listen } from '../../test/kit/listen.ts';
import { packChart } from './chart.ts';
import { repository, type Tarball } from './npm-pack.ts';
import { startRegistry } from './registry.ts';

const CHART = fileURLToPath(new URL('../helm/hopline', import.meta.url));
const TIME = new Date('2026-01-01T00:00:00Z');

function emptyFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-registry-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function registryWith(t: TestContext) {
  const folder = emptyFolder(t);
  const path = join(folder, 'hopline-agent-1.2.3.tgz');
  writeFileSync(path, 'bytes of a tarball');
  const manifest = { name: '@hopline/agent', version: '1.2.3', dependencies: { react: '1.0.0' } };
  const sums = { integrity: 'sha512-x', shasum: 'y' };
  const tarball: Tarball = {
    ...sums,
    name: '@hopline/agent',
    version: '1.2.3',
    path,
    bytes: 0,
    unpackedBytes: 0,
    files: 1,
    manifest,
  };
  const chart = await packChart(CHART, folder, TIME);
  const asked: string[] = [];
  const upstream = createServer((request, response) => {
    asked.push(request.url!);
    response.end('{"name":"react"}');
  });
  const origin = await listen(upstream);
  t.after(() => upstream.close());
  const upstreamUrl = `${origin}/`;
  const registry = await startRegistry({ tarballs: [tarball], charts: [chart] }, { upstream: upstreamUrl });
  t.after(registry.close);
  return { registry, chart, manifest, sums, asked };
}

test('npm gets the manifest with checksums and address, and the tarball', async t => {
  const { registry, manifest, sums } = await registryWith(t);
  const document = (await (await fetch(`${registry.url}@hopline%2fagent`)).json()) as {
    'dist-tags': unknown;
    versions: Record<string, { dist: { tarball: string } }>;
  };
  assert.deepEqual(document['dist-tags'], { latest: '1.2.3' });
  const { dist, ...rest } = document.versions['1.2.3']!;
  assert.deepEqual(rest, { ...manifest, _id: '@hopline/agent@1.2.3' });
  assert.deepEqual(dist, { ...sums, tarball: `${registry.url}@hopline/agent/-/hopline-agent-1.2.3.tgz` });
  assert.equal(await (await fetch(dist.tarball)).text(), 'bytes of a tarball');
});

test('requests for other packages go to the upstream registry, but never one for a package of ours', async t => {
  const { registry, asked } = await registryWith(t);
  assert.equal(await (await fetch(`${registry.url}react`)).text(), '{"name":"react"}');
  for (const name of ['hopline', 'create-hopline', '@hopline%2fcli', '@hopline/agent/-/other.tgz'])
    assert.equal((await fetch(`${registry.url}${name}`)).status, 404, name);
  assert.equal((await fetch(`${registry.url}react`, { method: 'PUT', body: '{}' })).status, 404);
  assert.deepEqual(asked, ['/react']);
});

test('helm gets the chart by version and by digest', async t => {
  const { registry, chart } = await registryWith(t);
  const at = (path: string) => fetch(`${registry.url}v2/charts/hopline/${path}`);
  assert.equal((await fetch(`${registry.url}v2/`)).status, 200);
  const response = await at(`manifests/${chart.version}`);
  assert.equal(response.headers.get('docker-content-digest'), chart.digest);
  type Blob = { digest: string; size: number };
  const manifest = (await response.json()) as { config: Blob; layers: Blob[] };
  for (const { digest, size } of [manifest.config, ...manifest.layers]) {
    const bytes = Buffer.from(await (await at(`blobs/${digest}`)).arrayBuffer());
    assert.equal(bytes.length, size);
    assert.equal(`sha256:${createHash('sha256').update(bytes).digest('hex')}`, digest);
  }
  assert.deepEqual(await (await at('tags/list')).json(), { name: 'hopline', tags: [chart.version] });
  for (const path of ['manifests/9.9.9', 'blobs/sha256:0']) assert.equal((await at(path)).status, 404, path);
  assert.equal((await fetch(`${registry.url}v2/charts/other/manifests/1.2.3`)).status, 404);
});

test('a chart is packed with its name as folder, and the same files give the same bytes', async t => {
  const [one, other] = [await packChart(CHART, emptyFolder(t), TIME), await packChart(CHART, emptyFolder(t), TIME)];
  assert.equal(one.digest, other.digest);
  for (const path of ['path', 'ociPath'] as const) assert.deepEqual(readFileSync(one[path]), readFileSync(other[path]));
  const names: string[] = [];
  await list({ file: one.path, onReadEntry: entry => names.push(entry.path) });
  assert.ok(names.includes('hopline/Chart.yaml') && names.every(name => name.startsWith('hopline/')), names.join());
  const layout: string[] = [];
  await list({ file: one.ociPath, onReadEntry: entry => layout.push(entry.path) });
  assert.ok(
    ['oci-layout', 'index.json'].every(name => layout.includes(name)),
    layout.join(),
  );
  assert.ok(layout.includes(`blobs/${one.digest.replace(':', '/')}`));
});

test('a package names the repository of the workflow that publishes it; outside of a workflow it names none', () => {
  const workflow = { GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'o/hopline' };
  assert.deepEqual(repository(workflow), { repository: { type: 'git', url: 'git+https://github.com/o/hopline.git' } });
  assert.deepEqual(repository({}), {});
});
