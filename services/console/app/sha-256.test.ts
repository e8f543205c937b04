import assert from 'node:assert/strict';
import * as node from 'node:crypto';
import { test } from 'node:test';
import { hash } from './sha-256.ts';

test('a hash is the same as in Node, at every length around a block and for every kind of character', () => {
  const texts = ['', 'abc', '🎯 é\n', ...Array.from({ length: 130 }, (_, length) => 'x'.repeat(length)), 'y'.repeat(100_000)];
  for (const text of texts)
    for (const encoding of ['hex', 'base64url'] as const)
      assert.equal(hash('sha256', text, encoding), node.hash('sha256', text, encoding), `${text.length} ${encoding}`);
});
