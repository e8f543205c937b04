import { globSync, statSync } from 'node:fs';
import { relative, resolve, sep } from 'node:path';

/** Tests without a broker are beside the code, tests with one in `test/`. */
const UNIT = ['packages/**/*.test.ts', 'services/**/*.test.ts', 'infra/**/*.test.{ts,mjs}'];
const WITH_BROKER = ['test/**/*.test.ts'];

export type TestFiles = { unit: string[]; withBroker: string[] };

/**
 * Full paths of the test files of the checkout, sorted. `paths` (files or folders, relative to `base`) select some of them.
 * Throws an Error for a path that selects nothing.
 */
export function findTestFiles(root: string, paths: string[], base: string): TestFiles {
  const all = { unit: find(root, UNIT), withBroker: find(root, WITH_BROKER) };
  if (paths.length === 0) return all;
  const selected = paths.map(path => resolve(base, path));
  for (const [index, path] of selected.entries()) {
    if (![...all.unit, ...all.withBroker].some(file => isWithin(file, path))) throw new Error(`no test files in ${paths[index]}`);
  }
  const chosen = (files: string[]) => files.filter(file => selected.some(path => isWithin(file, path)));
  return { unit: chosen(all.unit), withBroker: chosen(all.withBroker) };
}

function find(root: string, patterns: string[]): string[] {
  const exclude = (name: string) => name.split(sep).includes('node_modules');
  return globSync(patterns, { cwd: root, exclude })
    .map(path => resolve(root, path))
    .filter(path => statSync(path).isFile())
    .sort();
}

function isWithin(file: string, path: string): boolean {
  const rest = relative(path, file);
  return rest === '' || !rest.startsWith('..');
}
