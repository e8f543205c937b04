import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { compile, compiledPath, entriesOf, reachable, readWorkspaces, unlinked, withoutOptional } from './compile.ts';
import { npmPack, type Tarball } from './npm-pack.ts';
import { NODE_MIN, PUBLIC_PACKAGES, type PublicPackage, publicEntries } from './public-packages.ts';

/** Makes the tarballs of the public packages in `outFolder`, which is created. Throws if a package cannot be compiled or packed. */
export function packAll(root: string, outFolder: string): Tarball[] {
  mkdirSync(outFolder, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), 'hopline-pack-'));
  try {
    const compiled = join(work, 'compiled');
    compile(root, compiled);
    const folders = PUBLIC_PACKAGES.map(target => stage(root, compiled, join(work, target.folder), target));
    return npmPack(folders, outFolder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Writes the files of a package to `staging`, and returns that folder. */
function stage(root: string, compiled: string, staging: string, target: PublicPackage): string {
  const source = JSON.parse(readFileSync(join(root, target.folder, 'package.json'), 'utf8'));
  const { version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const entries = publicEntries(target, source.exports);
  const bins = Object.entries<string>(source.bin ?? {});
  const scripts = [...entries, ...bins].map(([, path]) => join(compiled, compiledPath(`${target.folder}/${path}`)));
  const shared = 'shared' in target ? entriesOf(target.shared, root, compiled) : new Map<string, string>();
  const code = reachable(scripts, shared);
  const types = reachable(
    entries.map(([, path]) => join(compiled, compiledPath(`${target.folder}/${path}`).replace(/\.js$/, '.d.ts'))),
    shared,
  );
  const optional: readonly string[] = 'optional' in target ? target.optional : [];
  for (const file of new Set([...code.files, ...types.files])) {
    const copy = join(staging, 'dist', relative(compiled, file));
    mkdirSync(dirname(copy), { recursive: true });
    if (file.endsWith('.d.ts'))
      writeFileSync(copy, withoutOptional(unlinked(readFileSync(file, 'utf8'), file, shared), optional));
    else if (shared.size === 0) cpSync(file, copy);
    else writeFileSync(copy, unlinked(readFileSync(file, 'utf8'), file, shared));
  }
  for (const file of 'files' in target ? target.files : []) {
    if (!existsSync(join(root, file))) throw new Error(`${file} is missing: npm run pack builds it`);
    const copy = join(staging, 'dist', file);
    mkdirSync(dirname(copy), { recursive: true });
    cpSync(join(root, file), copy);
  }
  const peers: Record<string, string> = { ...source.peerDependencies };
  for (const specifier of shared.values()) peers[specifier.split('/', 2).join('/')] = `^${version}`;
  const imported = [...new Set([...code.packages, ...types.packages])].filter(name => !(name in peers)).sort();
  const unused = optional.find(name => !imported.includes(name));
  if (unused !== undefined) throw new Error(`${target.folder} does not import its optional package ${unused}`);
  const distPath = (path: string) => `./dist/${compiledPath(`${target.folder}/${path}`)}`;
  const manifest = {
    name: source.name,
    version,
    description: target.description,
    keywords: target.keywords,
    license,
    type: 'module',
    engines: { node: NODE_MIN },
    ...(entries.length > 0 && {
      exports: Object.fromEntries(
        entries.map(([name, path]) => [name, { types: distPath(path).replace(/\.js$/, '.d.ts'), default: distPath(path) }]),
      ),
    }),
    ...(bins.length > 0 && { bin: Object.fromEntries(bins.map(([name, path]) => [name, distPath(path)])) }),
    files: ['dist'],
    sideEffects: false,
    dependencies: dependencies(
      root,
      imported.filter(name => !optional.includes(name)),
    ),
    ...(Object.keys(peers).length + optional.length > 0 && {
      peerDependencies: { ...peers, ...dependencies(root, optional) },
    }),
    ...(optional.length > 0 && {
      peerDependenciesMeta: Object.fromEntries(optional.map(name => [name, { optional: true }])),
    }),
  };
  writeFileSync(join(staging, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  cpSync(join(root, 'LICENSE'), join(staging, 'LICENSE'));
  cpSync(join(root, target.folder, 'README.md'), join(staging, 'README.md'));
  return staging;
}

/**
 * Packages that depend on exact versions of each other. With a range, npm installs a newer patch next to the version that the others name:
 * there were 11 copies of `@opentelemetry/resources` on 2026-11-28, when one package of the family had no release of that patch.
 */
const RELEASED_TOGETHER = /^@opentelemetry\/(?!api$)/;

/** Versions that the workspace has installed. The lower bound is the version that the tests ran with. */
function dependencies(root: string, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.map(name => {
      const { version } = JSON.parse(readFileSync(join(installedFolder(root, name), 'package.json'), 'utf8'));
      return [name, RELEASED_TOGETHER.test(name) ? version : `^${version}`];
    }),
  );
}

/** Folder of a package that the workspace has installed. */
export function installedFolder(root: string, name: string): string {
  const candidates = readWorkspaces(root).map(({ folder }) => join(root, folder, 'node_modules', name));
  const folder = candidates.find(candidate => existsSync(join(candidate, 'package.json')));
  if (folder === undefined) throw new Error(`${name} is imported, but no package of the workspace depends on it`);
  return folder;
}
