import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { extract } from 'tar';
import { packCreateHopline } from './create-hopline-package.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/** The package as npm unpacks it. */
let unpacked: string;

before(async () => {
  unpacked = mkdtempSync(join(tmpdir(), 'hopline-create-'));
  const { path } = packCreateHopline(ROOT, unpacked);
  await extract({ file: path, cwd: unpacked });
});

after(() => rmSync(unpacked, { recursive: true, force: true }));

/** `registry`: absent for the default of npm, which sets no variable for it. */
function create(t: TestContext, args: string[], registry?: string) {
  const { npm_config_registry: _own, ...environment } = process.env;
  const cwd = mkdtempSync(join(tmpdir(), 'hopline-created-'));
  t.after(() => rmSync(cwd, { recursive: true, force: true }));
  const run = () =>
    spawnSync(process.execPath, [join(unpacked, 'package/create.mjs'), ...args], {
      cwd,
      encoding: 'utf8',
      env: { ...environment, ...(registry !== undefined && { npm_config_registry: registry }) },
    });
  return { cwd, run };
}

test('a project has the name of its folder everywhere, and no .npmrc from the default registry', t => {
  const { cwd, run } = create(t, ['weather']);
  const { status, stdout } = run();
  assert.equal(status, 0);
  assert.match(stdout, /cd weather && npm install/);
  const files = readdirSync(join(cwd, 'weather'), { recursive: true, withFileTypes: true }).filter(entry => entry.isFile());
  assert.ok(files.length > 8);
  for (const { parentPath, name } of files) assert.doesNotMatch(readFileSync(join(parentPath, name), 'utf8'), /NAME/, name);
  const read = (file: string) => readFileSync(join(cwd, 'weather', file), 'utf8');
  assert.match(read('agent.ts'), /name: 'weather'/);
  assert.equal(JSON.parse(read('agents.json')).agents[0].name, 'weather');
  assert.match(read('.gitignore'), /^node_modules\/$/m);
  assert.ok(!existsSync(join(cwd, 'weather/.npmrc')));
});

test('the packages have the versions of this repository', t => {
  const { cwd, run } = create(t, []);
  run();
  const { name, dependencies, devDependencies } = JSON.parse(readFileSync(join(cwd, 'my-agent/package.json'), 'utf8'));
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  assert.equal(name, 'my-agent');
  assert.equal(devDependencies.hopline, version);
  for (const one of Object.values({ ...dependencies, ...devDependencies })) assert.match(String(one), /^\d+\.\d+\.\d+/);
});

test('a project installs from the registry from which its program came', t => {
  const { cwd, run } = create(t, ['weather'], 'http://127.0.0.1:4873/');
  run();
  assert.equal(readFileSync(join(cwd, 'weather/.npmrc'), 'utf8'), 'registry=http://127.0.0.1:4873/\n');
});

test('a wrong name, an unknown option and a folder with files are refused', t => {
  for (const [args, message] of [
    [['Weather'], /"Weather" cannot be the name of an agent/],
    [['--help'], /^create-hopline \[FOLDER\]/],
    [['a', 'b'], /^create-hopline \[FOLDER\]/],
  ] as const) {
    const { status, stderr } = create(t, [...args]).run();
    assert.equal(status, 1);
    assert.match(stderr, message);
  }
  const { cwd, run } = create(t, ['full']);
  mkdirSync(join(cwd, 'full'));
  writeFileSync(join(cwd, 'full/notes.txt'), 'mine');
  assert.match(run().stderr, /full is not empty/);
  assert.deepEqual(readdirSync(join(cwd, 'full')), ['notes.txt']);
});
