import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { writeApiReference } from './api-reference.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

test('every public name of the packages is documented', { timeout: 120_000 }, async () => {
  assert.deepEqual(await writeApiReference(ROOT, undefined), []);
});
