import { createHash } from 'node:crypto';
import { createReadStream, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { create } from 'tar';
import type { Architecture } from './elf.ts';

export type ImageConfig = {
  /** Name and tag, e.g. `hopline:0.1.0`. */
  name: string;
  architecture: Architecture;
  /** Time of the image and of every file in it: the time of the commit. */
  created: Date;
  user?: string;
  workingFolder?: string;
  entrypoint: readonly string[];
  command?: readonly string[];
  environment?: readonly string[];
  ports?: readonly string[];
  labels: Readonly<Record<string, string>>;
};

export type ImageArchive = { path: string; bytes: number; compressedBytes: number; id: string };

/**
 * Writes a docker-archive (`docker save`, `ctr images import`, `kind load image-archive`) with one layer per folder. The same
 * folders and configuration give the same bytes, and so the same image id.
 */
export async function writeImageArchive(
  path: string,
  layerFolders: readonly string[],
  config: ImageConfig,
): Promise<ImageArchive> {
  const work = mkdtempSync(join(tmpdir(), 'hopline-image-'));
  try {
    const layers = await writeLayers(work, layerFolders, config.created);
    const image = JSON.stringify(imageJson(config, layers));
    const id = createHash('sha256').update(image).digest('hex');
    writeFileSync(join(work, `${id}.json`), image);
    const manifest = [{ Config: `${id}.json`, RepoTags: [config.name], Layers: layers.map(({ file }) => file) }];
    writeFileSync(join(work, 'manifest.json'), JSON.stringify(manifest));
    mkdirSync(dirname(path), { recursive: true });
    await writeTar(path, work, ['manifest.json', `${id}.json`, ...layers.map(({ file }) => file)], config.created);
    return { path, bytes: statSync(path).size, compressedBytes: await gzipBytes(path), id: `sha256:${id}` };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const OCI = 'application/vnd.oci.image';

/**
 * Writes an OCI archive (`skopeo copy oci-archive:…`, `oras copy --from-oci-layout`, `ctr images import`) with the same layers. The same folders and
 * configuration give the same bytes. `id` is the digest of the manifest, by which a registry knows the image.
 */
export async function writeOciArchive(path: string, layerFolders: readonly string[], config: ImageConfig): Promise<ImageArchive> {
  const work = mkdtempSync(join(tmpdir(), 'hopline-image-'));
  try {
    const blobs: string[] = [];
    mkdirSync(join(work, 'blobs/sha256'), { recursive: true });
    const blob = (mediaType: string, digest: string, size: number) => {
      blobs.push(`blobs/sha256/${digest}`);
      return { mediaType: `${OCI}.${mediaType}`, digest: `sha256:${digest}`, size };
    };
    const json = (mediaType: string, value: object) => {
      const content = JSON.stringify(value);
      const digest = createHash('sha256').update(content).digest('hex');
      writeFileSync(join(work, 'blobs/sha256', digest), content);
      return blob(mediaType, digest, Buffer.byteLength(content));
    };
    const files = await writeLayers(work, layerFolders, config.created);
    const layers = files.map(({ file, digest }) => {
      const { size } = statSync(join(work, file));
      renameSync(join(work, file), join(work, 'blobs/sha256', digest));
      return blob('layer.v1.tar', digest, size);
    });
    const image = json('config.v1+json', imageJson(config, files));
    const mediaType = `${OCI}.manifest.v1+json`;
    const manifest = json('manifest.v1+json', { schemaVersion: 2, mediaType, config: image, layers });
    const [, tag] = config.name.split(':') as [string, string];
    const annotations = {
      'org.opencontainers.image.ref.name': tag,
      // containerd gives this name to the image when it imports the file.
      'io.containerd.image.name': `docker.io/library/${config.name}`,
    };
    const platform = { architecture: config.architecture, os: 'linux' };
    const index = { schemaVersion: 2, mediaType: `${OCI}.index.v1+json`, manifests: [{ ...manifest, platform, annotations }] };
    writeFileSync(join(work, 'index.json'), JSON.stringify(index));
    writeFileSync(join(work, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
    mkdirSync(dirname(path), { recursive: true });
    await writeTar(path, work, ['oci-layout', 'index.json', ...blobs.sort()], config.created);
    return { path, bytes: statSync(path).size, compressedBytes: await gzipBytes(path), id: manifest.digest };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** One tar file per folder, with the digest of its bytes. */
async function writeLayers(work: string, folders: readonly string[], created: Date): Promise<{ file: string; digest: string }[]> {
  const layers: { file: string; digest: string }[] = [];
  for (const [index, folder] of folders.entries()) {
    const file = `layer-${index}.tar`;
    await writeTar(join(work, file), folder, filesBelow(folder), created);
    layers.push({ file, digest: await sha256(join(work, file)) });
  }
  return layers;
}

function imageJson(config: ImageConfig, layers: readonly { digest: string }[]): object {
  const { architecture, created, user, workingFolder, entrypoint, command, environment, ports, labels } = config;
  return {
    architecture,
    os: 'linux',
    created: created.toISOString(),
    config: {
      ...(user !== undefined && { User: user }),
      ...(workingFolder !== undefined && { WorkingDir: workingFolder }),
      Entrypoint: entrypoint,
      ...(command && { Cmd: command }),
      ...(environment && { Env: environment }),
      ...(ports && { ExposedPorts: Object.fromEntries(ports.map(port => [port, {}])) }),
      Labels: labels,
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => `sha256:${digest}`) },
    history: layers.map(() => ({ created: created.toISOString(), created_by: 'npm run image' })),
  };
}

/** `portable` omits users, groups and device numbers of the build machine. */
async function writeTar(file: string, cwd: string, entries: readonly string[], mtime: Date): Promise<void> {
  await create({ file, cwd, portable: true, mtime, noDirRecurse: true }, [...entries]);
}

function filesBelow(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.map(entry => relative(folder, join(entry.parentPath, entry.name))).sort();
}

async function sha256(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

/** The bytes that a registry stores and a node downloads. */
async function gzipBytes(file: string): Promise<number> {
  let bytes = 0;
  await pipeline(createReadStream(file), createGzip(), async chunks => {
    for await (const chunk of chunks) bytes += (chunk as Buffer).length;
  });
  return bytes;
}
