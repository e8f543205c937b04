import { createHash } from 'node:crypto';
import { createReadStream, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
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
    const layers: { file: string; digest: string }[] = [];
    for (const [index, folder] of layerFolders.entries()) {
      const file = `layer-${index}.tar`;
      await writeTar(join(work, file), folder, filesBelow(folder), config.created);
      layers.push({ file, digest: await sha256(join(work, file)) });
    }
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
