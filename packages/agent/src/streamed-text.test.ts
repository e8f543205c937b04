import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LaneText } from './streamed-text.ts';

test('an equal snapshot changes nothing, a continuation adds its rest, any other replaces', () => {
  const content = new LaneText();
  assert.deepEqual(content.token('one'), { replace: false, text: 'one' });
  assert.equal(content.snapshot('one'), undefined);
  assert.deepEqual(content.snapshot('one two'), { replace: false, text: ' two' });
  assert.deepEqual(content.snapshot('three'), { replace: true, text: 'three' });
  assert.deepEqual(content.snapshot(''), { replace: true, text: '' });
  assert.equal(content.token(''), undefined);
});

test('any sequence of tokens and snapshots folds to the text that was meant', () => {
  const step = fc.record({
    snapshot: fc.boolean(),
    text: fc.string({ unit: fc.constantFrom('a', 'b', '\ud83d', '\ude80', ' '), maxLength: 3 }),
  });
  fc.assert(
    fc.property(fc.array(step), steps => {
      const content = new LaneText();
      let shown = '';
      let meant = '';
      for (const { snapshot, text } of steps) {
        meant = snapshot ? text : meant + text;
        const change = snapshot ? content.snapshot(text) : content.token(text);
        if (change) shown = change.replace ? change.text : shown + change.text;
      }
      assert.equal(shown, meant);
      assert.equal(content.text, meant);
    }),
  );
});

test('a token costs the same at 100,000 as at 1,000', () => {
  const perToken = (tokens: number) => {
    const content = new LaneText();
    const start = performance.now();
    for (let i = 0; i < tokens; i += 1) content.token(' token');
    const ms = performance.now() - start;
    assert.equal(content.snapshot(' token'.repeat(tokens)), undefined);
    return ms / tokens;
  };
  perToken(100_000);
  const short = Math.min(...Array.from({ length: 20 }, () => perToken(1_000)));
  const long = Math.min(...Array.from({ length: 5 }, () => perToken(100_000)));
  // Ten times: far above noise, far below the hundredfold that copying would cost.
  assert.ok(long < short * 10 + 0.001, `${long} ms against ${short} ms`);
});
