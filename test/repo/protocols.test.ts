import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

/** docs/reference/protocols.md: each row has a test, and names the versions that its tests install. */

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');
const PAGE = 'docs/reference/protocols.md';

type Row = { name: string; versions: string; run: string; limits: string };

function rows(): Row[] {
  const lines = read(PAGE)
    .split('\n')
    .filter(line => line.startsWith('| ') && !/^\| (protocol|framework) \|/.test(line));
  return lines.map(line => {
    const cells = line.slice(2, -2).split(' | ');
    const [name = '', versions = '', run = '', limits = ''] = cells;
    assert.equal(cells.length, 4, line);
    return { name, versions, run, limits };
  });
}

/** Where tests name the packages that they install. */
const PLACES = [
  'pnpm-workspace.yaml',
  'infra/examples/copilotkit/package.json',
  'test/support/agents/python-agent.ts',
  'test/integration/agents/python-kit-frameworks.test.ts',
  'docs/guides/frameworks.md',
];

function isInstalled(name: string, version: string, places: readonly string[]): boolean {
  const plain = (text: string) => text.replaceAll(/[.[\]/^$+*?()|{}\\]/g, '\\$&');
  const found = new RegExp(`["'\`/ ]${plain(name)}["']?(?:==|@|: "?(?:npm:[^ ]+@)?)${plain(version)}(?![\\d.])`);
  return places.some(place => found.test(` ${read(place)}`));
}

test('each row of the table of protocols has a test and its limits', () => {
  const found = rows();
  assert.ok(found.length > 15);
  for (const { name, run, limits } of found) {
    const tests = [...run.matchAll(/\]\(\.\.\/\.\.\/([^)]+\.test\.ts)\)/g)].map(([, path]) => path!);
    assert.ok(tests.length > 0, `${name}: no test`);
    for (const path of tests) assert.ok(existsSync(new URL(path, ROOT)), `${name}: ${path}`);
    assert.ok(limits.length > 5, name);
  }
});

test('the versions in the table of protocols are those that the tests install', () => {
  for (const { name, versions, run } of rows()) {
    if (versions.startsWith('none')) continue;
    const named = [...versions.matchAll(/`([^`]+)` (\d[\w.-]*)/g)];
    assert.ok(named.length > 0, `${name}: no version`);
    const tests = [...run.matchAll(/\]\(\.\.\/\.\.\/([^)]+\.test\.ts)\)/g)].map(([, path]) => path!);
    for (const [, found, version] of named)
      assert.ok(isInstalled(found!, version!, [...PLACES, ...tests]), `${name}: ${found} ${version}`);
  }
});

test('the check finds a version that no test installs', () => {
  assert.equal(isInstalled('openai', '7.59.0', PLACES), true);
  assert.equal(isInstalled('openai', '7.59', PLACES), false);
  assert.equal(isInstalled('openai', '7.58.9', PLACES), false);
});
