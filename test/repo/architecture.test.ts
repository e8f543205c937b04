import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import {
  ALLOWED_IMPORTS,
  BANNED_NAMES,
  COMMAND_IMPORTERS,
  LAYERS,
  MEMORY_LOG_IMPORTERS,
  NATS_IMPORTERS,
  PURE_PACKAGES,
} from './allowed-imports.ts';
import { importsOf, isTest, projectFiles, ROOT, read } from './source-files.ts';

const files = projectFiles();
const sources = files.filter(path => /\.(ts|mjs)$/.test(path));
const production = sources.filter(path => /^(packages|services)\//.test(path) && !isTest(path));
const packageOf = (path: string): string => path.split('/')[1]!;
const isScope = (name: string): boolean => name.startsWith('@hopline/');
const nameOf = (module: string): string => module.split('/')[1]!;

/** The imports between workspace packages in production code. */
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

test('imports are found', () => {
  assert.ok(production.length > 100, `only ${production.length} source files found`);
  assert.ok(edges().get('relay')?.has('coalesce'));
});

test('packages import exactly what the layer map allows', () => {
  for (const [from, imports] of edges()) {
    const allowed = ALLOWED_IMPORTS[from];
    assert.ok(allowed, `${from} is missing in ALLOWED_IMPORTS`);
    assert.deepEqual([...imports].sort(), [...allowed].sort(), `imports of ${from}`);
  }
  assert.deepEqual(Object.keys(ALLOWED_IMPORTS).sort(), [...edges().keys()].sort());
});

test('every package is in one layer, and imports only its own layer or lower ones', () => {
  const packages = [...new Set(projectFiles().flatMap(path => /^packages\/([^/]+)\/package\.json$/.exec(path)?.[1] ?? []))];
  assert.deepEqual(LAYERS.flat().toSorted(), packages.toSorted());
  const layerOf = (name: string) => LAYERS.findIndex(layer => layer.includes(name));
  for (const name of packages)
    for (const imported of ALLOWED_IMPORTS[name]!)
      assert.ok(layerOf(imported) <= layerOf(name), `${name} is in a lower layer than ${imported}, which it imports`);
});

test('packages/README.md shows the layers, the highest first, with one line for each package', () => {
  const sections = read('packages/README.md')
    .split(/^## (?=\d\. )/m)
    .slice(1);
  const shown = sections.map(section =>
    [...section.matchAll(/^\| \[[\w-]+\]\(([\w-]+)\/README\.md\) \|/gm)].map(([, name]) => name),
  );
  assert.deepEqual(shown.toReversed(), LAYERS);
});

test('package.json declares exactly the imported workspace packages', () => {
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

test('packages have no import cycle', () => {
  const visit = (name: string, path: string[]): void => {
    assert.ok(!path.includes(name), `cycle: ${[...path, name].join(' -> ')}`);
    for (const next of ALLOWED_IMPORTS[name] ?? []) visit(next, [...path, name]);
  };
  for (const name of Object.keys(ALLOWED_IMPORTS)) visit(name, []);
});

test('files of a package have no import cycle, imports of types included', () => {
  const acyclic = new Set<string>();
  const visit = (file: string, path: string[]): void => {
    assert.ok(!path.includes(file), `cycle: ${[...path.slice(path.indexOf(file)), file].join(' -> ')}`);
    if (acyclic.has(file)) return;
    for (const module of importsOf(file)) if (module.startsWith('.')) visit(join(dirname(file), module), [...path, file]);
    acyclic.add(file);
  };
  for (const file of production) visit(file, []);
});

test('relative imports stay inside their package', () => {
  for (const path of production) {
    for (const module of importsOf(path)) {
      if (!module.startsWith('.')) continue;
      const target = join(dirname(path), module);
      assert.ok(
        target.startsWith(`${path.split('/').slice(0, 2).join('/')}/`),
        `${path} imports ${module}, which is outside of its package`,
      );
    }
  }
});

test('tests beside the sources import no broker or cluster from test/, and test/kit imports only types from packages', () => {
  const beside = sources.filter(path => !path.startsWith('test/'));
  for (const path of beside) {
    const targets = importsOf(path).map(module => (module.startsWith('.') ? join(dirname(path), module) : module));
    for (const target of targets.filter(found => found.startsWith('test/'))) {
      assert.ok(isTest(path) && !/^test\/support\/(?:cluster|nats)\//.test(target), `${path} imports ${target}`);
    }
  }
  for (const path of sources.filter(file => file.startsWith('test/kit/'))) {
    for (const [line] of read(path).matchAll(/^import .*'@hopline\/.*$/gm)) assert.match(line, /^import type /, path);
  }
});

test('pure packages use no I/O, clock or randomness', () => {
  for (const path of production.filter(file => packageOf(file) in PURE_PACKAGES)) {
    const builtIns = importsOf(path).filter(module => module.startsWith('node:'));
    for (const module of builtIns) assert.ok(PURE_PACKAGES[packageOf(path)]!.includes(module), `${path} imports ${module}`);
    const text = read(path);
    assert.doesNotMatch(
      text,
      /\b(setTimeout|setInterval|performance\.now|Math\.random)\b/,
      `${path} uses a timer, a clock or randomness`,
    );
    if (packageOf(path) !== 'a2a') assert.doesNotMatch(text, /\bDate\.now\b|new Date\(\)/, `${path} reads the clock`);
  }
});

test('only its own tests import the command', () => {
  for (const path of files.filter(file => /\.(ts|tsx|mjs)$/.test(file))) {
    if (COMMAND_IMPORTERS.some(allowed => path.startsWith(allowed))) continue;
    for (const module of importsOf(path)) {
      const target = module.startsWith('.') ? join(dirname(path), module) : module;
      assert.ok(!/^(@hopline|packages)\/cli(\/|$)/.test(target), `${path} imports ${module}, which is part of the command`);
    }
  }
});

test('only log-jetstream imports a NATS client', () => {
  for (const path of sources) {
    const nats = importsOf(path).some(module => module.startsWith('@nats-io/'));
    assert.ok(!nats || NATS_IMPORTERS.some(folder => path.startsWith(`${folder}/`)), `${path} imports a NATS client`);
  }
});

test('only main.ts reads the environment', () => {
  for (const path of production) {
    if (!path.endsWith('/main.ts')) assert.doesNotMatch(read(path), /\bprocess\.env\b/, path);
  }
});

test('only the replay server imports the in-memory log in production code', () => {
  for (const path of production) {
    if (!MEMORY_LOG_IMPORTERS.includes(packageOf(path))) assert.ok(!importsOf(path).includes('@hopline/log/memory'), path);
  }
});

test('no file or folder has a name without meaning', () => {
  for (const path of files) {
    for (const part of path.split('/')) assert.ok(!BANNED_NAMES.includes(part.replace(/\..*$/, '')), path);
  }
});

test('every package and service has a README', () => {
  const folders = new Set(production.map(path => path.split('/').slice(0, 2).join('/')));
  for (const folder of folders) assert.ok(files.includes(`${folder}/README.md`), `${folder} has no README.md`);
});

test('re-exports name what they export', () => {
  for (const path of production) assert.doesNotMatch(read(path), /export \* from/, path);
});
