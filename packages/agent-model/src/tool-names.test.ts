import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callableName } from './tool-names.ts';

test('a tool name is unique, and providers accept it', () => {
  const taken = new Set<string>();
  const names = ['files/read.text', 'files/read.text', 'x'.repeat(80), 'x'.repeat(90), '日本', ''].map(name => {
    const callable = callableName(name, taken);
    taken.add(callable);
    return callable;
  });
  assert.deepEqual(names, ['files_read_text', 'files_read_text_2', 'x'.repeat(64), `${'x'.repeat(62)}_2`, '__', 'tool']);
  assert.ok(names.every(name => /^[A-Za-z0-9_-]{1,64}$/.test(name)));
});
