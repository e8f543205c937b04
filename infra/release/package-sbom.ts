import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { lockedChecksums, npmPurl, packagesIn, sbom } from '../image/bill-of-materials.ts';
import type { Tarball } from './npm-pack.ts';
import { installedFolder } from './pack.ts';

/** Writes the bill of materials of a tarball (CycloneDX) beside it, and returns its path. */
export function writePackageSbom(root: string, tarball: Tarball): string {
  const path = tarball.path.replace(/\.tgz$/, '.sbom.cdx.json');
  writeFileSync(path, isBundle(tarball) ? bundledSbom(tarball) : `${JSON.stringify(sbomOf(root, tarball), null, 2)}\n`);
  return path;
}

/** The package `hopline` consists of the bundles of the image, which come with their bill of materials. */
const isBundle = ({ manifest }: Tarball): boolean => manifest.bundleDependencies !== undefined;

function bundledSbom({ path }: Tarball): Buffer {
  return execFileSync('tar', ['-xzOf', path, 'package/sbom.cdx.json']);
}

/** The packages that npm installs with this one, in the versions that the tests ran with. npm may install newer ones. */
function sbomOf(root: string, { name, version, manifest }: Tarball): object {
  const type = manifest.bin === undefined ? 'library' : 'application';
  const direct = Object.keys(manifest.dependencies ?? {}).map(dependency => installedFolder(root, dependency));
  const checksums = lockedChecksums(readFileSync(join(root, 'pnpm-lock.yaml'), 'utf8'));
  return sbom({ type, name, version, purl: npmPurl(name, version) }, packagesIn(withDependencies(direct)), checksums);
}

function withDependencies(direct: readonly string[]): Set<string> {
  const folders = new Set<string>();
  const open = [...direct];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const folder = realpathSync(next);
    if (folders.has(folder)) continue;
    folders.add(folder);
    open.push(...dependenciesOf(folder));
  }
  return folders;
}

/** The folders of a package's dependencies, including its peers unless they are optional, because npm installs those as well. */
function dependenciesOf(folder: string): string[] {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const { dependencies = {}, peerDependencies = {}, peerDependenciesMeta = {}, optionalDependencies = {} } = manifest;
  const peers = Object.keys(peerDependencies).filter(name => peerDependenciesMeta[name]?.optional !== true);
  return [...new Set([...Object.keys(dependencies), ...peers])].flatMap(name => {
    const found = folderAbove(folder, name);
    if (found === undefined && !(name in optionalDependencies))
      throw new Error(`${name}, which ${folder} needs, is not installed`);
    return found ?? [];
  });
}

/** Where Node finds a package that code in `folder` imports. */
function folderAbove(folder: string, name: string): string | undefined {
  for (let parent = folder; parent !== dirname(parent); parent = dirname(parent)) {
    const candidate = join(parent, 'node_modules', name);
    if (existsSync(join(candidate, 'package.json'))) return candidate;
  }
  return undefined;
}
