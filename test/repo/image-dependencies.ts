import { bundledPackages, type ListedPackage } from '../../infra/image/bill-of-materials.ts';
import { imageModules } from '../../infra/image/bundle.ts';
import { ROOT } from './source-files.ts';

/** An npm package of the image. */
export type ImagePackage = ListedPackage & {
  /** True if a source of this repository imports it, or if it is a program of its own. */
  isDirect: boolean;
  /** Ids (`name@version`) of the other packages whose code it brings into the image. */
  brings: ReadonlySet<string>;
};

export const idOf = ({ name, version }: { name: string; version: string }): string => `${name}@${version}`;

/** The npm packages of the image, sorted by name, from the modules that the bundles consist of. */
export async function imageDependencies(): Promise<ImagePackage[]> {
  const modules = await imageModules(ROOT.replace(/\/$/, ''));
  const packageOf = new Map<string, ListedPackage>();
  const packages = new Map<string, ListedPackage>();
  for (const path of modules.keys()) {
    const [found] = bundledPackages(ROOT, [path]);
    if (found === undefined) continue;
    packageOf.set(path, found);
    packages.set(idOf(found), found);
  }
  const edges = new Map([...packages.keys()].map(id => [id, new Set<string>()]));
  const imported = new Set([...modules.values()].flat());
  const direct = new Set<string>();
  for (const [path, imports] of modules) {
    const importer = packageOf.get(path);
    if (importer !== undefined && !imported.has(path)) direct.add(idOf(importer));
    for (const one of imports) {
      const target = packageOf.get(one);
      if (target === undefined) continue;
      if (importer === undefined) direct.add(idOf(target));
      else edges.get(idOf(importer))!.add(idOf(target));
    }
  }
  return [...packages]
    .map(([id, found]) => ({ ...found, isDirect: direct.has(id), brings: reachable(edges, id) }))
    .toSorted((a, b) => idOf(a).localeCompare(idOf(b), 'en'));
}

function reachable(edges: ReadonlyMap<string, ReadonlySet<string>>, from: string): ReadonlySet<string> {
  const found = new Set([from]);
  // A Set that grows during the loop is walked to its end.
  for (const id of found) for (const next of edges.get(id)!) found.add(next);
  found.delete(from);
  return found;
}
