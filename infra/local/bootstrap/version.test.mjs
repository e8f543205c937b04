import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareVersions, isAtLeast, parseVersion } from './version.mjs';

test('a version is found in the output of programs', () => {
  assert.equal(parseVersion('nats-server: v2.15.2\n'), '2.15.2');
  assert.equal(parseVersion('v26.10.0'), '26.10.0');
  assert.equal(parseVersion('go version go1.26 linux/amd64'), '1.26.0');
  assert.equal(parseVersion('nats-server: v2.16.0-RC.1'), '2.16.0');
  assert.equal(parseVersion('command not found'), null);
});

test('versions compare by number, not by letter', () => {
  assert.ok(isAtLeast('2.9.10', '2.9.4'));
  assert.ok(isAtLeast('2.9.4', '2.9.4'));
  assert.ok(!isAtLeast('2.9.3', '2.9.4'));
  assert.ok(isAtLeast('25.0.0', '24.15.0'));
  assert.ok(!isAtLeast('24.14.9', '24.15.0'));
  assert.deepEqual(['2.9.10', '2.15.2', '2.9.4'].sort(compareVersions), ['2.9.4', '2.9.10', '2.15.2']);
});
