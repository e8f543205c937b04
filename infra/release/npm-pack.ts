import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type Tarball = {
  name: string;
  version: string;
  path: string;
  bytes: number;
  unpackedBytes: number;
  files: number;
  /** Checksums as a registry publishes them. */
  integrity: string;
  shasum: string;
  /** Its package.json. */
  manifest: Record<string, unknown>;
};

/** Makes the tarballs of the packages in `folders`, in their order. One npm makes all of them, because its start takes most of the time. */
export function npmPack(folders: readonly string[], outFolder: string): Tarball[] {
  const manifests = folders.map(folder => {
    const path = join(folder, 'package.json');
    const manifest = { ...JSON.parse(readFileSync(path, 'utf8')), ...repository(process.env) };
    writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
    return manifest;
  });
  const npm = ['pack', ...folders, '--json', '--ignore-scripts', '--pack-destination', outFolder];
  const made = JSON.parse(execFileSync('npm', npm, { cwd: outFolder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }));
  return manifests.map((manifest, index) => {
    const { name, version, filename, unpackedSize, entryCount, integrity, shasum } = made[index];
    const path = join(outFolder, filename);
    const bytes = statSync(path).size;
    return { name, version, path, bytes, unpackedBytes: unpackedSize, files: entryCount, integrity, shasum, manifest };
  });
}

/** In a workflow, the repository of a package: npm accepts a provenance only for the repository that the package names. */
export function repository({ GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name }: NodeJS.ProcessEnv): object {
  return server && name ? { repository: { type: 'git', url: `git+${server}/${name}.git` } } : {};
}

/** The address of the registry that npm uses here, with a slash at its end. */
export function npmRegistry(): string {
  const address = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim();
  return address.endsWith('/') ? address : `${address}/`;
}

/** A line for the user about a tarball. */
export function describe({ name, version, path, bytes, unpackedBytes, files }: Tarball): string {
  return `${name}@${version}  ${kib(bytes)} KiB packed, ${kib(unpackedBytes)} KiB unpacked, ${files} files  ${path}`;
}

function kib(bytes: number): string {
  return (bytes / 1024).toFixed(0);
}
