import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { findOnPath, machinePlatform, npmCommand, requireGit } from './machine.mjs';
import { SetupError } from './setup-error.mjs';

test('the platform key contains processor and C library', () => {
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

test('Windows is an error that recommends WSL', () => {
  assert.throws(() => machinePlatform('win32', 'x64'), { name: 'SetupError', message: /WSL/ });
});

test('a program is found only in absolute folders of PATH and only if it is executable', t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const program = join(folder, 'tool');
  writeFileSync(program, '');
  assert.equal(findOnPath('tool', { PATH: folder }), null);
  chmodSync(program, 0o755);
  assert.equal(findOnPath('tool', { PATH: `.::/nowhere:${folder}` }), program);
  assert.equal(findOnPath('tool', {}), null);
});

test('a missing npm or git is an error that names what to install', () => {
  assert.throws(() => npmCommand({ PATH: '' }), SetupError);
  assert.throws(() => requireGit({ PATH: '' }), { message: /git is not on PATH; install it/ });
});

test('the npm that started the process is used; another package manager is not', () => {
  assert.deepEqual(npmCommand({ npm_execpath: '/lib/npm/bin/npm-cli.js', PATH: '' }), [
    process.execPath,
    '/lib/npm/bin/npm-cli.js',
  ]);
  assert.throws(() => npmCommand({ npm_execpath: '/lib/pnpm.cjs', PATH: '' }), SetupError);
});
