import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { isSetUp, markSetUp, setupKey } from './setup-stamp.mjs';

function checkout(t) {
  const root = mkdtempSync(join(tmpdir(), 'hopline-'));
  t.after(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, 'packages', 'a2a'), { recursive: true });
  writeFileSync(join(root, 'pnpm-lock.yaml'), 'lockfileVersion: 9');
  writeFileSync(join(root, 'packages', 'a2a', 'package.json'), '{}');
  return root;
}

test('the key depends only on the lockfile, the packages, the platform and the major version of Node', t => {
  const root = checkout(t);
  const key = () => setupKey(root, 'linux-x64', '26.10.0');
  const first = key();
  assert.equal(key(), first);
  assert.equal(setupKey(root, 'linux-x64', '26.11.1'), first);
  assert.notEqual(setupKey(root, 'linux-arm64', '26.10.0'), first);
  assert.notEqual(setupKey(root, 'linux-x64', '24.15.0'), first);
  writeFileSync(join(root, 'packages', 'a2a', 'source.ts'), 'export {};');
  assert.equal(key(), first);
  writeFileSync(join(root, 'packages', 'a2a', 'package.json'), '{"dependencies":{}}');
  assert.notEqual(key(), first);
});

test('a checkout is set up only when its node_modules is complete for this key', t => {
  const root = checkout(t);
  assert.ok(!isSetUp(root, 'key'));
  mkdirSync(join(root, 'node_modules'));
  markSetUp(root, 'key');
  assert.ok(!isSetUp(root, 'key'), 'pnpm never finished');
  writeFileSync(join(root, 'node_modules', '.modules.yaml'), '');
  assert.ok(isSetUp(root, 'key'));
  assert.ok(!isSetUp(root, 'another key'));
});
