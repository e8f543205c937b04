import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';

/** Import specifiers in JavaScript and in declarations, bare or relative. Does not match a text that ends in one of the keywords. */
const SPECIFIER = /((?<!['"-])\bfrom\s*|(?<!['"-])\bimport\s*\(?\s*|import\.meta\.resolve\(\s*)(['"])([^'"\n]+)\2/g;
/** Files that another process runs, such as the sub-agent of `hopline agent`. */
const FILE_URL = /(new URL\(\s*)(['"])(\.[^'"\n]+)\.ts\2(?=,\s*import\.meta\.url)/g;

/**
 * Features of ES2024 and of later Node versions that the sources use and Node 20 lacks. The compiled code calls these functions instead, so
 * that it does not change a global of the user's process. A test runs every command of the package on the lowest Node that it declares.
 */
const DOWNLEVEL_FILE = 'node-20.js';
const DOWNLEVEL = {
  'Promise.withResolvers': [
    'promiseWithResolvers',
    'let resolve; let reject; const promise = new Promise((a, b) => { resolve = a; reject = b; }); return { promise, resolve, reject };',
  ],
  'Map.groupBy': [
    'mapGroupBy',
    'const [items, keyOf] = args; const groups = new Map(); let index = 0; for (const item of items) { const key = keyOf(item, index++); if (groups.has(key)) groups.get(key).push(item); else groups.set(key, [item]); } return groups;',
  ],
  'URL.parse': ['parseUrl', 'try { return new URL(...args); } catch { return null; }'],
} as const;

type Workspace = { folder: string; name: string; exports: Readonly<Record<string, string>> };

/** Compiles every package to JavaScript with declarations below `outFolder`, in the same tree as the repository. */
export function compile(root: string, outFolder: string): void {
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  // `npm test` checks the types of the same sources. Checking them takes two thirds of the CPU time of the compiler, and its
  // threads take a third of the rest.
  const options = ['-p', join(root, 'infra', 'release'), '--noCheck', '--singleThreaded', '--outDir', outFolder];
  execFileSync(tsc, options, { cwd: root, stdio: 'inherit' });
  const workspaces = readWorkspaces(root);
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const functions = Object.values(DOWNLEVEL).map(([name, body]) => `export function ${name}(...args) { ${body} }\n`);
  writeFileSync(join(outFolder, DOWNLEVEL_FILE), functions.join(''));
  for (const file of filesBelow(outFolder)) {
    if (!/\.(js|d\.ts)$/.test(file)) continue;
    const text = linked(downlevel(readFileSync(file, 'utf8'), file, outFolder), file, outFolder, workspaces);
    writeFileSync(file, text);
    for (const path of jsonImports(text)) {
      const copy = join(dirname(file), path);
      copyJson(copy, join(root, relative(outFolder, copy)), version);
    }
  }
}

function downlevel(text: string, file: string, outFolder: string): string {
  if (!file.endsWith('.js')) return text;
  return Object.entries(DOWNLEVEL).reduce((code, [call, [name]]) => {
    if (!code.includes(`${call}(`)) return code;
    const path = relativePath(file, join(outFolder, DOWNLEVEL_FILE));
    const [first, rest] = code.startsWith('#!')
      ? [code.slice(0, code.indexOf('\n') + 1), code.slice(code.indexOf('\n') + 1)]
      : ['', code];
    return `${first}import { ${name} } from '${path}';\n${rest.replaceAll(`${call}(`, `${name}(`)}`;
  }, text);
}

/** The compiler does not copy JSON from outside the source folders, such as a package.json with the version. */
function jsonImports(text: string): string[] {
  return [...text.matchAll(SPECIFIER)].map(match => match[3]!).filter(specifier => /^\..*\.json$/.test(specifier));
}

/** Copies only the version of a package.json, because the code reads nothing else. Every package has the same version. */
function copyJson(copy: string, source: string, version: string): void {
  mkdirSync(dirname(copy), { recursive: true });
  if (basename(source) === 'package.json') writeFileSync(copy, `${JSON.stringify({ version, type: 'module' })}\n`);
  else cpSync(source, copy);
}

export function readWorkspaces(root: string): Workspace[] {
  return ['packages', 'services'].flatMap(group =>
    readdirSync(join(root, group))
      // The package for Python has no package.json.
      .filter(folder => existsSync(join(root, group, folder, 'package.json')))
      .map(folder => {
        const { name, exports = {} } = JSON.parse(readFileSync(join(root, group, folder, 'package.json'), 'utf8'));
        return { folder: `${group}/${folder}`, name, exports };
      }),
  );
}

/**
 * Replaces imports of workspace packages with relative paths, so that a published package contains everything that it needs of Hopline, and
 * internal packages stay internal. Two copies of one internal package in one process would break `instanceof` on its errors, so nothing
 * published depends on another published package.
 */
function linked(text: string, file: string, outFolder: string, workspaces: readonly Workspace[]): string {
  return text
    .replace(SPECIFIER, (whole, before: string, quote: string, specifier: string) => {
      const target = targetOf(specifier, workspaces);
      if (target !== undefined) return `${before}${quote}${relativePath(file, join(outFolder, target))}${quote}`;
      if (specifier.startsWith('.')) return `${before}${quote}${specifier.replace(/\.ts$/, '.js')}${quote}`;
      return whole;
    })
    .replace(FILE_URL, (_, before: string, quote: string, path: string) => `${before}${quote}${path}.js${quote}`);
}

function targetOf(specifier: string, workspaces: readonly Workspace[]): string | undefined {
  const workspace = workspaces.find(({ name }) => specifier === name || specifier.startsWith(`${name}/`));
  if (workspace === undefined) return undefined;
  const entry = workspace.exports[`.${specifier.slice(workspace.name.length)}`];
  if (entry === undefined) throw new Error(`${workspace.name} does not export ${specifier}`);
  return compiledPath(`${workspace.folder}/${entry}`);
}

/** The compiled entry points of the workspace in `folder`, code and declarations, with the specifiers that import them. */
export function entriesOf(folder: string, root: string, outFolder: string): Map<string, string> {
  const { name, exports } = readWorkspaces(root).find(workspace => workspace.folder === folder)!;
  return new Map(
    Object.entries(exports).flatMap(([entry, path]) => {
      const code = join(outFolder, compiledPath(`${folder}/${path}`));
      const specifier = `${name}${entry.slice(1)}`;
      return [
        [code, specifier],
        [code.replace(/\.js$/, '.d.ts'), specifier],
      ];
    }),
  );
}

/** Imports the files in `shared` by their specifiers again. */
export function unlinked(text: string, file: string, shared: ReadonlyMap<string, string>): string {
  return text.replace(SPECIFIER, (whole, before: string, quote: string, path: string) => {
    const specifier = shared.get(join(dirname(file), path));
    return specifier === undefined ? whole : `${before}${quote}${specifier}${quote}`;
  });
}

/** Lets declarations compile where the optional packages are not installed: what they import from those is then `any`. */
export function withoutOptional(declarations: string, optional: readonly string[]): string {
  const lines = declarations.split('\n').flatMap(line => {
    const specifiers = [...line.matchAll(SPECIFIER)].map(match => match[3]!);
    return specifiers.some(specifier => optional.includes(specifier)) ? ['// @ts-ignore', line] : [line];
  });
  return lines.join('\n');
}

/** `packages/client/./src/index.ts` -> `packages/client/src/index.js` */
export function compiledPath(source: string): string {
  return source.replace('/./', '/').replace(/\.ts$/, '.js');
}

function relativePath(from: string, to: string): string {
  const path = relative(dirname(from), to).split(sep).join('/');
  return path.startsWith('.') ? path : `./${path}`;
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name));
}

/** All files that `entries` reach, without those in `shared`, and the names of the third-party packages they import. Full paths. */
export function reachable(
  entries: readonly string[],
  shared: Pick<ReadonlyMap<string, string>, 'has'> = new Map(),
): { files: string[]; packages: string[] } {
  const files = new Set<string>();
  const packages = new Set<string>();
  const open = [...entries];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (files.has(file) || shared.has(file)) continue;
    files.add(file);
    if (file.endsWith('.json')) continue;
    const text = readFileSync(file, 'utf8');
    const isDeclaration = file.endsWith('.d.ts');
    for (const [, , , specifier] of text.matchAll(SPECIFIER)) {
      if (specifier!.startsWith('.'))
        open.push(join(dirname(file), isDeclaration ? specifier!.replace(/\.js$/, '.d.ts') : specifier!));
      else if (!specifier!.startsWith('node:') && !specifier!.startsWith('data:')) packages.add(packageOf(specifier!));
    }
    for (const [, path] of text.matchAll(/new URL\(\s*['"](\.[^'"\n]+\.js)['"],\s*import\.meta\.url/g))
      open.push(join(dirname(file), path!));
  }
  return { files: [...files].sort(), packages: [...packages].sort() };
}

/** `@scope/name/sub` -> `@scope/name` */
function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}
