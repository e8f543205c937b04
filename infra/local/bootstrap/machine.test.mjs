import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { findOnPath, machinePlatform, npmCommand, requireGit } from './machine.mjs';
import { SetupError } from './setup-error.mjs';

test('the platform key tells processor and C library', () => {
  assert.equal(
    machinePlatform('linux', 'x64', () => true),
    'linux-x64',
  );
  assert.equal(
    machinePlatform('linux', 'arm64', () => false),
    'linux-arm64-musl',
  );
  assert.equal(
    machinePlatform('darwin', 'arm64', () => false),
    'darwin-arm64',
  );
});

test('Windows gets a sentence', () => {
  assert.throws(() => machinePlatform('win32', 'x64'), { name: 'SetupError', message: /WSL/ });
});

test('a program is found in absolute folders of PATH only, and only when it can be run', t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const program = join(folder, 'tool');
  writeFileSync(program, '');
  assert.equal(findOnPath('tool', { PATH: folder }), null);
  chmodSync(program, 0o755);
  assert.equal(findOnPath('tool', { PATH: `.::/nowhere:${folder}` }), program);
  assert.equal(findOnPath('tool', {}), null);
});

test('without npm or git there is one sentence that says what to install', () => {
  assert.throws(() => npmCommand({ PATH: '' }), SetupError);
  assert.throws(() => requireGit({ PATH: '' }), { message: /git is not on PATH; install it/ });
});

test('the npm that started us is used again; another package manager in its place is not', () => {
  assert.deepEqual(npmCommand({ npm_execpath: '/lib/npm/bin/npm-cli.js', PATH: '' }), [
    process.execPath,
    '/lib/npm/bin/npm-cli.js',
  ]);
  assert.throws(() => npmCommand({ npm_execpath: '/lib/pnpm.cjs', PATH: '' }), SetupError);
});
