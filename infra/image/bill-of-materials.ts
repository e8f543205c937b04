import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** An npm package whose code is in the bundle, or that npm installs with a package. */
export type ListedPackage = { name: string; version: string; license: string; folder: string };

/** The npm packages among the bundled files (paths relative to `root`), sorted by name and version. */
export function bundledPackages(root: string, files: readonly string[]): ListedPackage[] {
  return packagesIn(new Set(files.filter(file => file.includes('node_modules/')).map(file => packageFolder(join(root, file)))));
}

/** The npm packages in these folders, sorted by name and version. */
export function packagesIn(folders: ReadonlySet<string>): ListedPackage[] {
  return [...folders].map(readPackage).sort((a, b) => `${a.name}@${a.version}`.localeCompare(`${b.name}@${b.version}`, 'en'));
}

/** Nested package.json files without a version (`{"type":"module"}`) mark a build folder of the package above them. */
function packageFolder(file: string): string {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const manifest = join(folder, 'package.json');
    if (existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version !== undefined) return folder;
    if (folder === dirname(folder)) throw new Error(`${file} does not belong to a package`);
  }
}

function readPackage(folder: string): ListedPackage {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return { name, version, license: typeof license === 'string' ? license : 'NOASSERTION', folder };
}

/** The checksum of each npm package in a pnpm lockfile, by name and version (`fastify@5.12.8`), as base64 of SHA-512. */
export function lockedChecksums(lockfile: string): Map<string, string> {
  const entries = lockfile.matchAll(/^ {2}'?([^\s':]+)'?:\n {4}resolution: \{integrity: sha512-([\w+/=]+)/gm);
  return new Map([...entries].map(([, id, checksum]) => [id!, checksum!]));
}

/** The subject of a bill of materials. `node`: version of the Node that it contains or fetches. */
export type Subject = { type: 'application' | 'library'; name: string; version: string; purl?: string; node?: string };

/**
 * CycloneDX 1.6. The serial number, which attestations require, depends only on the content, and no time is recorded: the same image has the
 * same list. Throws for a package that the lockfile does not pin.
 */
export function sbom(
  { node, ...component }: Subject,
  packages: readonly ListedPackage[],
  checksums: ReadonlyMap<string, string>,
): object {
  const npm = packages.map(({ name, version: packageVersion, license }) => {
    const checksum = checksums.get(`${name}@${packageVersion}`);
    if (checksum === undefined) throw new Error(`${name}@${packageVersion} is listed, but pnpm-lock.yaml has no checksum of it`);
    return {
      type: 'library',
      name,
      version: packageVersion,
      licenses: [licenseEntry(license)],
      purl: npmPurl(name, packageVersion),
      // The checksum of the tarball, which pnpm compares when it installs the package, from any registry.
      hashes: [{ alg: 'SHA-512', content: Buffer.from(checksum, 'base64').toString('hex') }],
    };
  });
  const platform =
    node === undefined ? [] : [{ type: 'platform', name: 'node', version: node, purl: `pkg:generic/node@${node}` }];
  const components = [...platform, ...npm];
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${contentUuid(JSON.stringify([component, components]))}`,
    version: 1,
    metadata: { component },
    components,
  };
}

/** Package URL (ECMA-427) of an npm package. */
export function npmPurl(name: string, version: string): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

/** A manifest may name an SPDX identifier, an SPDX expression, or a file. */
function licenseEntry(license: string): object {
  if (license.startsWith('SEE LICENSE')) return { license: { name: license } };
  return license.includes(' ') ? { expression: license } : { license: { id: license } };
}

/** A UUID of version 8 (RFC 9562), whose bits are a hash of the text. */
function contentUuid(text: string): string {
  const bytes = createHash('sha256').update(text).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** The license of Hopline, then the licenses of the bundled packages that ship one. */
export function licenseTexts(ownLicense: string, packages: readonly ListedPackage[]): string {
  const hopline = `hopline\n\n${readFileSync(ownLicense, 'utf8')}`;
  const others = packages.map(({ name, version, license, folder }) => {
    const file = readdirSync(folder).find(candidate => /^licen[cs]e/i.test(candidate));
    const text = file === undefined ? `License: ${license}\n` : readFileSync(join(folder, file), 'utf8');
    return `${name} ${version}\n\n${text}`;
  });
  return [hopline, ...others].join(`\n${'-'.repeat(80)}\n\n`);
}
