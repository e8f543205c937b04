import assert from 'node:assert/strict';
import test from 'node:test';
import { KEY_CHARS_MAX, requireKey } from './names.ts';

test('a key of KEY_CHARS_MAX characters is accepted, a longer one is not', () => {
  requireKey('x'.repeat(KEY_CHARS_MAX));
  assert.throws(() => requireKey('x'.repeat(KEY_CHARS_MAX + 1)), TypeError);
});
