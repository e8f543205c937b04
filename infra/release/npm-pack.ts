import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
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

/** Makes the tarball of the package in `folder`. */
export function npmPack(folder: string, outFolder: string): Tarball {
  const npm = ['pack', '--json', '--ignore-scripts', '--pack-destination', outFolder];
  const [made] = JSON.parse(execFileSync('npm', npm, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }));
  const path = join(outFolder, made.filename);
  return {
    name: made.name,
    version: made.version,
    path,
    bytes: statSync(path).size,
    unpackedBytes: made.unpackedSize,
    files: made.entryCount,
    integrity: made.integrity,
    shasum: made.shasum,
    manifest: JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')),
  };
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
