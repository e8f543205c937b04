import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT, read } from './source-files.ts';

/** Imports and re-exports, with the names that they bind. */
const NAMED = /(?:^|\n)\s*(import|export)\s+(?:type\s+)?(\{[^}]*\}|[\w$]+|\* as [\w$]+)\s*from\s*'([^']+)'/g;

type Import = { from: string; names: string[]; reExports: boolean };

function importsIn(path: string): Import[] {
  return [...read(path).matchAll(NAMED)].map(([, keyword, clause, from]) => ({
    from: from!,
    names: clause!.replace(/[{}]/g, '').split(',').flatMap(nameOf),
    reExports: keyword === 'export',
  }));
}

/** For `type A as B`: A is the name in the imported module. */
function nameOf(specifier: string): string[] {
  const name = specifier
    .trim()
    .replace(/^type\s+/, '')
    .split(' as ')[0]!;
  return name === '' ? [] : [name];
}

/** The files that declare a file's imports. A name from another package is followed through that package's index. */
export function filesImportedBy(path: string): Set<string> {
  const found = importsIn(path).flatMap(({ from, names }) => {
    const target = resolve(path, from);
    if (target === undefined) return [];
    return from.startsWith('.') ? [target] : names.flatMap(name => [target, ...declaring(target, name)]);
  });
  return new Set(found);
}

function declaring(index: string, name: string): string[] {
  const exported = importsIn(index).filter(({ reExports, names }) => reExports && names.includes(name));
  return exported.flatMap(({ from }) => resolve(index, from) ?? []);
}

function resolve(path: string, from: string): string | undefined {
  if (from.startsWith('.')) return join(dirname(path), from);
  const [scope, name, ...rest] = from.split('/');
  if (scope !== '@hopline' || name === undefined || !existsSync(join(ROOT, 'packages', name))) return undefined;
  const { exports } = JSON.parse(read(`packages/${name}/package.json`));
  const entry = exports[['.', ...rest].join('/')];
  return typeof entry === 'string' ? join('packages', name, entry) : undefined;
}
