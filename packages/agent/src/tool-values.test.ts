import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INPUT_DEPTH_MAX } from '@hopline/events';
import { TURN_TOOL_BYTES_MAX } from './limits.ts';
import { CUT_KEY, type CutValue, ToolValues } from './tool-values.ts';

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

test('a value up to its bound passes unchanged; one byte more is cut, with the size of the whole', () => {
  const values = new ToolValues();
  const edge = 'x'.repeat(98);
  assert.equal(values.bounded(edge, 100), edge);
  const cut = values.bounded(`${edge}x`, 100) as CutValue;
  assert.equal(cut[CUT_KEY], 101);
  assert.ok(edge.startsWith(cut.text) && cut.text.length >= 49);
  assert.deepEqual(values.bounded({ a: [1, null] }, 100), { a: [1, null] });
});

test('the beginning of a cut value has only whole characters, and stays within the bound as JSON', () => {
  for (const character of ['"', '\u0000', 'é', '😀']) {
    const { text } = new ToolValues().bounded(character.repeat(1_000), 101) as CutValue;
    assert.ok(bytesOf(text) <= 101, character);
    assert.ok(text.length > 0 && text.isWellFormed(), character);
  }
  const { text } = new ToolValues().bounded({ list: Array(100).fill(7) }, 50) as CutValue;
  assert.match(text, /^\{"list":\[7,7/);
});

test('a value too deep for an input is cut to its text', () => {
  const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);
  const values = new ToolValues();
  assert.deepEqual(values.bounded(nested(40), 1_000), nested(40));
  const cut = values.bounded(nested(INPUT_DEPTH_MAX), 1_000) as CutValue;
  assert.equal(cut.text, JSON.stringify(nested(INPUT_DEPTH_MAX)));
});

test('all values of a turn together have a bound', () => {
  const values = new ToolValues();
  const half = 'x'.repeat(TURN_TOOL_BYTES_MAX / 2 - 2);
  assert.equal(values.bounded(half, TURN_TOOL_BYTES_MAX), half);
  assert.equal(values.bounded(half, TURN_TOOL_BYTES_MAX), half);
  assert.deepEqual(values.bounded('y', TURN_TOOL_BYTES_MAX), { [CUT_KEY]: 3, text: '' });
});

test('a value that cannot be written as JSON is left out', () => {
  for (const value of [undefined, () => {}, Symbol('x')]) assert.equal(new ToolValues().bounded(value, 100), undefined);
});
