import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { safeFileName } from '@hopline/terminal';
import { parse } from 'yaml';

const read = (path: string) => parse(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8'));

test('the lockfile has a checksum for every package, and takes none from git or a URL', () => {
  const packages = Object.entries<{ resolution: Record<string, unknown> }>(read('pnpm-lock.yaml').packages);
  assert.ok(packages.length > 400);
  for (const [name, { resolution }] of packages) {
    assert.match(String(resolution.integrity), /^sha512-/, name);
    for (const source of ['tarball', 'repo', 'commit', 'directory']) assert.equal(resolution[source], undefined, name);
  }
});

test('no dependency may run an install script', () => {
  const { allowBuilds, dangerouslyAllowAllBuilds } = read('pnpm-workspace.yaml');
  assert.equal(dangerouslyAllowAllBuilds, undefined);
  assert.deepEqual([...new Set(Object.values(allowBuilds))], [false]);
});

const NAMES = [
  '../../etc/passwd',
  '..\\..\\evil',
  '/etc/passwd',
  'C:\\evil',
  '.bashrc',
  '..',
  '.',
  '',
  'a\0b',
  'a/b/c',
  '-rf',
  'x'.repeat(5_000),
  '\u202etxt.exe',
  'con\n.txt',
];
for (const name of NAMES)
  test(`the name of an artifact stays in its folder: ${JSON.stringify(name.slice(0, 30))}`, () => {
    const file = safeFileName(name);
    assert.match(file, /^[^/\\\0\n]+$/);
    assert.doesNotMatch(file, /^\./);
    assert.ok(Buffer.byteLength(file) <= 255);
  });
