import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type ImageConfig, writeImageArchive, writeOciArchive } from './archive.ts';

const work = mkdtempSync(join(tmpdir(), 'hopline-archive-test-'));
after(() => rmSync(work, { recursive: true, force: true }));

const CONFIG: ImageConfig = {
  name: 'sample:1',
  architecture: 'arm64',
  created: new Date('2026-01-02T03:04:05Z'),
  user: '65532:65532',
  workingFolder: '/app',
  entrypoint: ['/bin/program'],
  ports: ['8000/tcp'],
  labels: { 'org.opencontainers.image.title': 'sample' },
};

/** Two layers with the same content. The files of a folder are created in the given order. */
function layers(name: string, files: readonly string[], modifiedAt: Date): string[] {
  const folder = join(work, name);
  for (const file of files) {
    const path = join(folder, 'base', file);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, `content of ${file}`);
    utimesSync(path, modifiedAt, modifiedAt);
  }
  chmodSync(join(folder, 'base', 'bin/program'), 0o755);
  mkdirSync(join(folder, 'app'));
  symlinkSync('/bin/program', join(folder, 'app', 'link'));
  return [join(folder, 'base'), join(folder, 'app')];
}

test('the same files give the same archive, whatever their times and the order of their creation', async () => {
  const one = layers('one', ['bin/program', 'etc/a', 'etc/b'], new Date(1e12));
  const two = layers('two', ['etc/b', 'etc/a', 'bin/program'], new Date(2e12));
  const first = await writeImageArchive(join(work, 'one.tar'), one, CONFIG);
  const second = await writeImageArchive(join(work, 'two.tar'), two, CONFIG);
  assert.equal(first.id, second.id);
  assert.deepEqual(readFileSync(first.path), readFileSync(second.path));
  assert.ok(first.compressedBytes < first.bytes);
});

test('the archive is a docker-archive: a manifest, and the configuration and the layers under their digests', async () => {
  const { path, id } = await writeImageArchive(
    join(work, 'three.tar'),
    layers('three', ['bin/program', 'etc/a'], new Date(0)),
    CONFIG,
  );
  const folder = join(work, 'unpacked');
  mkdirSync(folder);
  execFileSync('tar', ['-xf', path, '-C', folder]);
  const [manifest] = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
  assert.deepEqual(manifest.RepoTags, ['sample:1']);
  const config = readFileSync(join(folder, manifest.Config));
  assert.equal(id, `sha256:${createHash('sha256').update(config).digest('hex')}`);
  const image = JSON.parse(config.toString());
  assert.equal(image.architecture, 'arm64');
  assert.equal(image.config.User, '65532:65532');
  assert.deepEqual(image.config.Entrypoint, ['/bin/program']);
  const digests = manifest.Layers.map(
    (layer: string) =>
      `sha256:${createHash('sha256')
        .update(readFileSync(join(folder, layer)))
        .digest('hex')}`,
  );
  assert.deepEqual(image.rootfs.diff_ids, digests);
  const listing = execFileSync('tar', ['-tvf', join(folder, manifest.Layers[0])], {
    encoding: 'utf8',
    env: { ...process.env, TZ: 'UTC' },
  });
  assert.match(listing, /-rwxr-xr-x .* 2026-01-02 03:04 bin\/program/);
});

test('the OCI archive has a layout in which every blob has the digest and size that its descriptor states', async () => {
  const folders = layers('four', ['bin/program', 'etc/a'], new Date(0));
  const { path, id } = await writeOciArchive(join(work, 'four.oci.tar'), folders, CONFIG);
  const again = await writeOciArchive(join(work, 'four-again.oci.tar'), folders, CONFIG);
  assert.deepEqual(readFileSync(path), readFileSync(again.path));
  const folder = join(work, 'layout');
  mkdirSync(folder);
  execFileSync('tar', ['-xf', path, '-C', folder]);
  const blobs = new Set(execFileSync('tar', ['-tf', path], { encoding: 'utf8' }).match(/blobs\/sha256\/\w+/g));
  const read = ({ digest, size }: { digest: string; size: number }) => {
    const name = `blobs/${digest.replace(':', '/')}`;
    const content = readFileSync(join(folder, name));
    assert.equal(`sha256:${createHash('sha256').update(content).digest('hex')}`, digest);
    assert.equal(content.length, size);
    blobs.delete(name);
    return content;
  };
  assert.deepEqual(JSON.parse(readFileSync(join(folder, 'oci-layout'), 'utf8')), { imageLayoutVersion: '1.0.0' });
  const [descriptor] = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8')).manifests;
  assert.equal(descriptor.digest, id);
  assert.deepEqual(descriptor.platform, { architecture: 'arm64', os: 'linux' });
  assert.equal(descriptor.annotations['org.opencontainers.image.ref.name'], '1');
  const manifest = JSON.parse(read(descriptor).toString());
  const image = JSON.parse(read(manifest.config).toString());
  for (const layer of manifest.layers) read(layer);
  assert.deepEqual(
    image.rootfs.diff_ids,
    manifest.layers.map(({ digest }: { digest: string }) => digest),
  );
  assert.equal(blobs.size, 0);
});
