import assert from 'node:assert/strict';
import { test } from 'node:test';
import { packageVersions } from './machine.ts';

test('versions are read from the catalog only, with quoted or plain names', () => {
  const workspace =
    'packages:\n  - test\ncatalog:\n  \'@a2a-js/sdk\': 1.3.0\n  express: 5.3.0\n  "fastify": 5.12.8\n  ajv: 8.20.0\nallowBuilds:\n  ssh2: false\n';
  assert.deepEqual(packageVersions(workspace), { '@a2a-js/sdk': '1.3.0', express: '5.3.0', fastify: '5.12.8' });
});
