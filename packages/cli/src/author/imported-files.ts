import { readFileSync, statSync } from 'node:fs';
import { dirname, extname, join, resolve } from 'node:path';

/** Files that are read for the imports of one agent. */
const FILES_MAX = 1_000;
/** A relative specifier in quotes, after the keyword of an import or export, of a dynamic import, or of a call of CommonJS. */
const SPECIFIER = /\b(?:from|import|require)\s*\(?\s*(['"`])(\.{1,2}\/[^'"`\n]+)\1/g;
const CODE = /\.[cm]?[jt]sx?$/;
/** What TypeScript and CommonJS leave out of a specifier. */
const SUFFIXES = ['', '.ts', '.js', '.mts', '.mjs', '.cts', '.cjs', '.json', '/index.ts', '/index.js'];

/** The files that a module imports by relative specifiers, directly or through such files, and itself. Packages are not followed. */
export function importedFiles(module: string): Set<string> {
  const found = new Set([resolve(module)]);
  for (const file of found) {
    if (!CODE.test(file) || found.size > FILES_MAX) continue;
    for (const [, , specifier] of read(file).matchAll(SPECIFIER)) {
      const target = fileAt(join(dirname(file), specifier!));
      if (target !== undefined) found.add(target);
    }
  }
  return found;
}

function fileAt(path: string): string | undefined {
  // `./x.js` may be the output of `./x.ts`, which Node imports only by its own name.
  const source = path.replace(/\.([cm]?)js$/, '.$1ts');
  return [...SUFFIXES.map(suffix => `${path}${suffix}`), ...(extname(path) === '' ? [] : [source])].find(isFile);
}

const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
