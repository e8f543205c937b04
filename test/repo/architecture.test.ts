import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { ALLOWED_IMPORTS, BANNED_NAMES, KNOWS_NATS, PURE_PACKAGES } from './allowed-imports.ts';
import { importsOf, isTest, projectFiles, ROOT, read } from './source-files.ts';

const files = projectFiles();
const sources = files.filter(path => /\.(ts|mjs)$/.test(path));
const production = sources.filter(path => /^(packages|services)\//.test(path) && !isTest(path));
const packageOf = (path: string): string => path.split('/')[1]!;
const isScope = (name: string): boolean => name.startsWith('@hopline/');
const nameOf = (module: string): string => module.split('/')[1]!;

/** Edges between workspace packages that the production code really has. */
function edges(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const path of production) {
    const from = packageOf(path);
    const set = found.get(from) ?? new Set();
    for (const module of importsOf(path).filter(isScope)) set.add(nameOf(module));
    found.set(from, set);
  }
  return found;
}

test('the reader of imports sees what is there', () => {
  assert.ok(production.length > 100, `only ${production.length} source files found`);
  assert.ok(edges().get('relay')?.has('coalesce'));
});

test('every import between packages is an edge of the layer map, and every edge of the map is used', () => {
  for (const [from, imports] of edges()) {
    const allowed = ALLOWED_IMPORTS[from];
    assert.ok(allowed, `${from} is not in the layer map`);
    assert.deepEqual([...imports].sort(), [...allowed].sort(), `imports of ${from}`);
  }
  assert.deepEqual(Object.keys(ALLOWED_IMPORTS).sort(), [...edges().keys()].sort());
});

test('package.json declares exactly the workspace packages that are imported', () => {
  for (const [from, allowed] of Object.entries(ALLOWED_IMPORTS)) {
    const folder = existsSync(join(ROOT, 'packages', from)) ? 'packages' : 'services';
    const { dependencies = {} } = JSON.parse(read(`${folder}/${from}/package.json`));
    assert.deepEqual(
      Object.keys(dependencies).filter(isScope).map(nameOf).sort(),
      [...allowed].sort(),
      `dependencies of ${from}`,
    );
  }
});

test('there is no cycle between packages', () => {
  const visit = (name: string, path: string[]): void => {
    assert.ok(!path.includes(name), `cycle: ${[...path, name].join(' -> ')}`);
    for (const next of ALLOWED_IMPORTS[name] ?? []) visit(next, [...path, name]);
  };
  for (const name of Object.keys(ALLOWED_IMPORTS)) visit(name, []);
});

test('packages never import services, and nothing imports from test or infra', () => {
  for (const path of production) {
    for (const module of importsOf(path)) {
      if (!module.startsWith('.')) continue;
      const target = join(dirname(path), module);
      assert.ok(target.startsWith(`${path.split('/').slice(0, 2).join('/')}/`), `${path} reaches out of its package: ${module}`);
    }
  }
});

test('pure packages use no I/O', () => {
  for (const path of production.filter(file => packageOf(file) in PURE_PACKAGES)) {
    const builtIns = importsOf(path).filter(module => module.startsWith('node:'));
    for (const module of builtIns) assert.ok(PURE_PACKAGES[packageOf(path)]!.includes(module), `${path} imports ${module}`);
    const text = read(path);
    assert.doesNotMatch(
      text,
      /\b(setTimeout|setInterval|performance\.now|Math\.random)\b/,
      `${path} has a timer, a clock or chance`,
    );
    if (packageOf(path) !== 'a2a') assert.doesNotMatch(text, /\bDate\.now\b|new Date\(\)/, `${path} reads the clock`);
  }
});

test('one package knows NATS', () => {
  for (const path of sources) {
    const nats = importsOf(path).some(module => module.startsWith('@nats-io/'));
    assert.ok(!nats || KNOWS_NATS.some(place => path.startsWith(place)), `${path} imports a NATS client`);
  }
});

test('only main.ts reads the environment', () => {
  for (const path of production) {
    if (!path.endsWith('/main.ts')) assert.doesNotMatch(read(path), /\bprocess\.env\b/, path);
  }
});

test('the in-memory twin is for tests', () => {
  for (const path of production) {
    if (packageOf(path) !== 'log') assert.ok(!importsOf(path).includes('@hopline/log/memory'), path);
  }
});

test('names say what a thing is', () => {
  for (const path of files) {
    for (const part of path.split('/')) assert.ok(!BANNED_NAMES.includes(part.replace(/\..*$/, '')), path);
  }
});

test('every package and service has a README', () => {
  const folders = new Set(production.map(path => path.split('/').slice(0, 2).join('/')));
  for (const folder of folders) assert.ok(files.includes(`${folder}/README.md`), `${folder} has no README.md`);
});

test('only the index of a package re-exports, by name', () => {
  for (const path of production) assert.doesNotMatch(read(path), /export \* from/, path);
});
