import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CLUSTER_LOOKBACK_UNITS, endsOpen, pieceEnd, utf8Bytes } from './text-cut.ts';

const FAMILY = '👩‍👩‍👧‍👦';

/** Cuts a text into pieces in the same way as an oversized token. */
function pieces(text: string, bytesMax: number): string[] {
  const list: string[] = [];
  for (let start = 0; start < text.length; ) {
    const end = pieceEnd(text, start, bytesMax);
    list.push(text.slice(start, end));
    start = end;
  }
  return list;
}

test('utf8Bytes equals the encoded length, with half a pair as its replacement character', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), text => assert.equal(utf8Bytes(text), Buffer.byteLength(text))));
  for (const text of ['\ud83d', '\ude00', '\ud83dx', 'x\ude00', '\ude00\ud83d'])
    assert.equal(utf8Bytes(text), Buffer.byteLength(text), JSON.stringify(text));
});

test('an end is open only if the next token is likely to continue it', () => {
  for (const text of ['\ud83d', 'a\ud83c', '👩‍', 'line\r', '🇫', '🇫🇷🇩']) assert.equal(endsOpen(text), true, JSON.stringify(text));
  for (const text of ['', 'a', 'e', '😀', FAMILY, 'line\r\n', '🇫🇷', '🇫🇷🇩🇪', '\ude00', ' ', '\0']) {
    assert.equal(endsOpen(text), false, JSON.stringify(text));
  }
});

test('pieces are whole code points, within the limit, and join to the text', () => {
  const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(text, fc.integer({ min: 4, max: 40 }), (whole, bytesMax) => {
      const list = pieces(whole, bytesMax);
      assert.equal(list.join(''), whole);
      for (const piece of list) {
        assert.ok(piece.length > 0 && Buffer.byteLength(piece) <= bytesMax);
        assert.equal(piece.isWellFormed(), true);
      }
    }),
  );
});

test('pieces never split a grapheme cluster that fits', () => {
  const clusters = fc.array(
    fc.constantFrom('a', 'é', 'e\u0301', '😀', FAMILY, '👍🏽', '🇫🇷', '\r\n', '❤️', '한', '\u1112\u1161\u11ab', '✅'),
    { maxLength: 60 },
  );
  const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });
  fc.assert(
    fc.property(clusters, list => {
      const whole = list.join('');
      const boundaries = new Set([...segmenter.segment(whole)].map(({ index }) => index));
      let end = 0;
      for (const piece of pieces(whole, 48).slice(0, -1)) {
        end += piece.length;
        assert.ok(boundaries.has(end), JSON.stringify([whole, end]));
      }
    }),
    { numRuns: 500 },
  );
});

test('a cluster longer than the limit or the look-back is cut at a code point', () => {
  assert.deepEqual(pieces(`e${'\u0301'.repeat(9)}`, 7), ['e\u0301\u0301\u0301', '\u0301\u0301\u0301', '\u0301\u0301\u0301']);
  const marks = `e${'\u0301'.repeat(2 * CLUSTER_LOOKBACK_UNITS)}`;
  assert.equal(pieces(marks, 1 + 2 * CLUSTER_LOOKBACK_UNITS)[0]!.length, 1 + CLUSTER_LOOKBACK_UNITS);
});

test('a cluster that begins CLUSTER_LOOKBACK_UNITS before the limit stays whole; a cluster that begins one unit earlier does not', () => {
  const cluster = `e${'\u0301'.repeat(2 * CLUSTER_LOOKBACK_UNITS)}`;
  const bytes = (marks: number) => 'before'.length + 1 + 2 * marks;
  assert.equal(pieceEnd(`before${cluster}`, 0, bytes(CLUSTER_LOOKBACK_UNITS - 1)), 'before'.length);
  assert.equal(pieceEnd(`before${cluster}`, 0, bytes(CLUSTER_LOOKBACK_UNITS)), 'before'.length + 1 + CLUSTER_LOOKBACK_UNITS);
});
