import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';

export type Tarball = { name: string; version: string; path: string; bytes: number; unpackedBytes: number; files: number };

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
  };
}
