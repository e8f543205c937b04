import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { codePoints } from './code-points.ts';

test('characters are code points, with the line break [S2-38]', () => {
  const start = '🔧 Calling tool: **version_service__version**\n';
  const end = '✅ Tool **version_service__version** completed\n';
  assert.deepEqual([codePoints(start), codePoints(end)], [45, 46]);
  assert.equal(start.length, 46, 'what the language calls length is another number');
  assert.deepEqual(['', 'ha', '👩‍👩‍👧', '\ud83d', '\ude80\ud83d', '\ud83d\ud83d\ude80'].map(codePoints), [0, 2, 5, 1, 2, 2]);
});

test('as many as iteration gives, whatever the text', () => {
  const half = fc.constantFrom('\ud83d', '\ude80', 'a', '🚀');
  fc.assert(
    fc.property(
      fc.array(half).map(parts => parts.join('')),
      text => assert.equal(codePoints(text), [...text].length),
    ),
  );
});
