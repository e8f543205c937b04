import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { codePoints, cutIndex, differingSpan } from './code-points.ts';

test('characters are counted as code points, line breaks included [S2-38]', () => {
  const start = '🔧 Calling tool: **version_service__version**\n';
  const end = '✅ Tool **version_service__version** completed\n';
  assert.deepEqual([codePoints(start), codePoints(end)], [45, 46]);
  assert.equal(start.length, 46, 'length counts UTF-16 units');
  assert.deepEqual(['', 'ha', '👩‍👩‍👧', '\ud83d', '\ude80\ud83d', '\ud83d\ud83d\ude80'].map(codePoints), [0, 2, 5, 1, 2, 2]);
});

test('the count is the same as with string iteration', () => {
  const half = fc.constantFrom('\ud83d', '\ude80', 'a', '🚀');
  fc.assert(
    fc.property(
      fc.array(half).map(parts => parts.join('')),
      text => assert.equal(codePoints(text), [...text].length),
    ),
  );
});

test('a cut never splits a surrogate pair, and is at most one UTF-16 unit before the index', () => {
  const text = 'a🚀\ud83db';
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5, 9].map(index => cutIndex(text, index)),
    [0, 1, 1, 3, 4, 5, 5],
  );
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.nat(40), (whole, index) => {
      const end = cutIndex(whole, index);
      assert.ok(end <= index && end >= Math.min(index, whole.length) - 1);
      assert.ok(whole.slice(0, end).isWellFormed() && whole.slice(end).isWellFormed());
    }),
  );
});

test('the range where two texts differ does not split a character', () => {
  for (const [a, b, wanted] of [
    ['same', 'same', [4, 4, 4]],
    ['one two three', 'one 2 three', [4, 7, 5]],
    ['aa', 'aaa', [2, 2, 3]],
    ['', 'x', [0, 0, 1]],
    // The same high half, then the same low half.
    ['x🎯y', 'x🎮y', [1, 3, 3]],
    ['x\u{1f3af}y', 'x\u{1f7af}y', [1, 3, 3]],
  ] as const) {
    const { start, aEnd, bEnd } = differingSpan(a, b);
    assert.deepEqual([start, aEnd, bEnd], wanted, `${a} ${b}`);
  }
});
