import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** An npm package whose code is in the bundle. */
export type BundledPackage = { name: string; version: string; license: string; folder: string };

/** The npm packages among the bundled files (paths relative to `root`), sorted by name and version. */
export function bundledPackages(root: string, files: readonly string[]): BundledPackage[] {
  const folders = new Set(files.filter(file => file.includes('node_modules/')).map(file => packageFolder(join(root, file))));
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

function readPackage(folder: string): BundledPackage {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return { name, version, license: typeof license === 'string' ? license : 'NOASSERTION', folder };
}

/** CycloneDX 1.6, without a time or serial number, so that the same image has the same list. */
export function sbom(version: string, packages: readonly BundledPackage[]): object {
  const npm = packages.map(({ name, version: packageVersion, license }) => ({
    type: 'library',
    name,
    version: packageVersion,
    licenses: [license.includes(' ') ? { expression: license } : { license: { id: license } }],
    purl: `pkg:npm/${name.replace('@', '%40')}@${packageVersion}`,
  }));
  const node = {
    type: 'platform',
    name: 'node',
    version: process.versions.node,
    purl: `pkg:generic/node@${process.versions.node}`,
  };
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', name: 'hopline', version } },
    components: [node, ...npm],
  };
}

/** The license of Hopline, then the licenses of the bundled packages that ship one. */
export function licenseTexts(ownLicense: string, packages: readonly BundledPackage[]): string {
  const own = `hopline\n\n${readFileSync(ownLicense, 'utf8')}`;
  const others = packages.map(({ name, version, license, folder }) => {
    const file = readdirSync(folder).find(candidate => /^licen[cs]e/i.test(candidate));
    const text = file === undefined ? `License: ${license}\n` : readFileSync(join(folder, file), 'utf8');
    return `${name} ${version}\n\n${text}`;
  });
  return [own, ...others].join(`\n${'-'.repeat(80)}\n\n`);
}
