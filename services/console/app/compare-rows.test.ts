import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TaskReport } from '@hopline/task-audit';
import { CONTEXT_CHARS, DIFFERING_CHARS_MAX, differingTexts, measureRows, timeRows } from './compare-rows.ts';

const measure = { frames: 3, chunks: 2, tokens: 10, characters: 40, firstTextMs: 50, totalMs: 1_000 };

test('figures are shown side by side with their change, and the calls of one agent in their order', () => {
  const a = {
    ...measure,
    calls: [
      { agent: 'x', ms: 10 },
      { agent: 'y', ms: 5 },
      { agent: 'x', ms: undefined },
    ],
  };
  const b = { ...measure, tokens: 15, firstTextMs: undefined, totalMs: 500, calls: [{ agent: 'x', ms: 20 }] };
  const rows = measureRows({ a, b });
  assert.deepEqual(
    rows.map(({ name, a: one, b: other, change }) => [name, one, other, change]),
    [
      ['time', '1.00 s', '500 ms', '−500 ms (−50 %)'],
      ['first text after', '50 ms', '–', ''],
      ['tokens', '10', '15', '+5 (+50 %)'],
      ['characters', '40', '40', 'same'],
      ['chunks', '2', '2', 'same'],
      ['frames', '3', '3', 'same'],
      ['call of x', '10 ms', '20 ms', '+10 ms (+100 %)'],
      ['call of x, number 2', '–', '–', ''],
      ['call of y', '5 ms', '–', ''],
    ],
  );
});

test('a text without spaces is cut too, but never within a character', () => {
  const [left, right] = ['\u{20bb7}野家'.repeat(3_000), '\u{20bb7}野家'.repeat(3_000)];
  for (const shift of ['', '一', '一二', '一二三'])
    for (const { before, after } of differingTexts(`${left}一${shift}${right}`, `${left}三${shift}${right}`)) {
      assert.ok(before.length > CONTEXT_CHARS && before.length <= CONTEXT_CHARS + 10, `${before.length} before`);
      assert.ok(after.length > CONTEXT_CHARS - 10 && after.length <= CONTEXT_CHARS + 10, `${after.length} after`);
      assert.ok(before.isWellFormed() && after.isWellFormed());
    }
});

test('a long difference shows its beginning and its end', () => {
  const [a, b] = differingTexts(`first${'x'.repeat(DIFFERING_CHARS_MAX)}last`, `y${'z'.repeat(DIFFERING_CHARS_MAX - 1)}`);
  assert.match(a.differing, /^firstx+ … 9 characters … x+last$/);
  assert.equal(b.differing.length, DIFFERING_CHARS_MAX);
});

test('a long text shows only its difference and the text around it', () => {
  const [left, right] = ['word '.repeat(1_000), 'tail '.repeat(1_000)];
  const [a, b] = differingTexts(`${left}one ${right}`, `${left}two ${right}`);
  assert.deepEqual([a.differing, b.differing], ['one', 'two']);
  for (const { before, after } of [a, b]) {
    assert.ok(before.startsWith('… word') && after.endsWith('tail  …'));
    assert.ok(before.length <= CONTEXT_CHARS + 10 && after.length <= CONTEXT_CHARS + 10);
  }
  const [short, longer] = differingTexts('a', 'a b');
  assert.deepEqual(short, { before: 'a', differing: '', after: '' });
  assert.deepEqual(longer, { before: 'a', differing: ' b', after: '' });
});

test('the hops of two tasks share one axis, which ends with the longer task', () => {
  const report = (hops: object[]) =>
    ({ hops, turns: [], producers: [], relays: [], gaps: [], events: [] }) as unknown as TaskReport;
  const hop = (name: string, fromMs: number, toMs: number, turn = 1) => ({ hop: name, turn, fromMs, toMs, ms: toMs - fromMs });
  const a = report([hop('accept', 0, 100), hop('agent', 100, 500)]);
  const b = report([hop('accept', 0, 50), hop('agent', 100, 1_000), hop('accept', 200, 400, 2)]);
  assert.deepEqual(timeRows(a, b), [
    { label: 'accept', a: [{ from: 0, to: 0.1, text: '100 ms' }], b: [{ from: 0, to: 0.05, text: '50 ms' }] },
    { label: 'agent', a: [{ from: 0.1, to: 0.5, text: '400 ms' }], b: [{ from: 0.1, to: 1, text: '900 ms' }] },
    { label: 'accept, turn 2', a: [], b: [{ from: 0.2, to: 0.4, text: '200 ms' }] },
  ]);
});
