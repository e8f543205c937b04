import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { SourceEdit } from '../support/source-edits.ts';
import { FOLDERS, type PackageName } from './mutant.ts';

/** Imports and re-exports of types only: they load nothing. */
const OF_TYPES = /^(?:import|export) type [^;]*;/gm;
/** Names of modules, wherever they occur, so that the module of a worker thread also counts. */
const MODULE = /'(\.{1,2}\/[^'\n]+\.ts|@hopline\/[^'\n]+)'/g;

/** Paths of a package's unit tests that load an edited file. The tests with the fewest modules in between are first. */
export function nearestTests(root: string, of: PackageName, edits: readonly SourceEdit[]): string[] {
  const isEdited = (path: string) => edits.some(({ file }) => file === path);
  const imports = importGraph(root);
  return FOLDERS[of]
    .flatMap(folder => globSync(`${folder}/src/**/*.test.ts`, { cwd: root }).sort())
    .map(path => ({ path, distance: distance(path, isEdited, imports) }))
    .filter(test => test.distance < Number.POSITIVE_INFINITY)
    .sort((a, b) => a.distance - b.distance)
    .map(({ path }) => path);
}

/** The number of imports from a file to the nearest wanted one; infinite if it loads none. */
function distance(from: string, isWanted: (path: string) => boolean, imports: (path: string) => readonly string[]): number {
  const seen = new Set([from]);
  for (let [ring, steps] = [[from], 0]; ring.length > 0; steps += 1) {
    if (ring.some(isWanted)) return steps;
    ring = ring.flatMap(imports).filter(path => !seen.has(path) && seen.add(path));
  }
  return Number.POSITIVE_INFINITY;
}

/** Returns the imports of a file within this checkout, as paths. A file is read only once. */
function importGraph(root: string): (path: string) => readonly string[] {
  const entries = packageEntries(root);
  const known = new Map<string, readonly string[]>();
  return path => {
    let found = known.get(path);
    if (found === undefined) {
      const source = readFileSync(join(root, path), 'utf8').replace(OF_TYPES, '');
      found = [...source.matchAll(MODULE)].flatMap(([, name = '']) => {
        const target = name.startsWith('.') ? join(dirname(path), name) : entries.get(name);
        return target === undefined || !existsSync(join(root, target)) ? [] : [target];
      });
      known.set(path, found);
    }
    return found;
  };
}

/** The entry points of the workspace's packages by the name that imports them, e.g. "@hopline/log/memory". */
function packageEntries(root: string): Map<string, string> {
  const manifests = globSync('{packages,services}/*/package.json', { cwd: root });
  const entries = manifests.flatMap(path => {
    const { name, exports = {} } = JSON.parse(readFileSync(join(root, path), 'utf8'));
    const targets = Object.entries<string>(exports);
    return targets.map(([key, target]) => [join(name, key), join(dirname(path), target)] as const);
  });
  return new Map(entries);
}
