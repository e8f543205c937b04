import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatCursor, parseCursor } from './cursor.ts';

test('a cursor survives its text form', () => {
  const number = fc.integer({ min: 0, max: 999_999_999_999_999 });
  fc.assert(
    fc.property(number, number, (generation, seq) => {
      assert.deepEqual(parseCursor(formatCursor({ generation, seq })), { generation, seq });
    }),
  );
});

test('text in any other form is not a cursor', () => {
  for (const text of ['', '1', '1.', '.1', '1.2.3', '-1.2', '1.2 ', '1e3.2', `${'9'.repeat(16)}.1`])
    assert.equal(parseCursor(text), undefined, text);
});
