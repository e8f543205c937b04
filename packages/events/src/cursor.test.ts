import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FORK_KEY, forkPointOf, formatCursor, parseCursor } from './cursor.ts';

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

test('metadata names a point of a task, no point, or a malformed one', () => {
  const point = { taskId: 't1', cursor: '3.7' };
  assert.deepEqual(forkPointOf({ [FORK_KEY]: { ...point, more: true }, agent: 'echo' }), point);
  for (const metadata of [undefined, {}, { agent: 'echo' }]) assert.equal(forkPointOf(metadata), undefined);
  const malformed = [
    null,
    't1',
    [],
    {},
    { taskId: 't1' },
    { ...point, taskId: 'a.b' },
    { ...point, cursor: '0.7' },
    { ...point, cursor: 3 },
  ];
  for (const value of malformed) assert.equal(forkPointOf({ [FORK_KEY]: value }), 'malformed', JSON.stringify(value));
});
