import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SaidText } from './said-text.ts';

test('a snapshot that is equal says nothing, a longer one the rest, another one replaces', () => {
  const said = new SaidText();
  assert.deepEqual(said.token('one'), { replace: false, text: 'one' });
  assert.equal(said.snapshot('one'), undefined);
  assert.deepEqual(said.snapshot('one two'), { replace: false, text: ' two' });
  assert.deepEqual(said.snapshot('three'), { replace: true, text: 'three' });
  assert.deepEqual(said.snapshot(''), { replace: true, text: '' });
  assert.equal(said.token(''), undefined);
});

test('what is said folds to what is meant, whatever comes', () => {
  const step = fc.record({
    snapshot: fc.boolean(),
    text: fc.string({ unit: fc.constantFrom('a', 'b', '\ud83d', '\ude80', ' '), maxLength: 3 }),
  });
  fc.assert(
    fc.property(fc.array(step), steps => {
      const said = new SaidText();
      let shown = '';
      let meant = '';
      for (const { snapshot, text } of steps) {
        meant = snapshot ? text : meant + text;
        const saying = snapshot ? said.snapshot(text) : said.token(text);
        if (saying) shown = saying.replace ? saying.text : shown + saying.text;
      }
      assert.equal(shown, meant);
      assert.equal(said.text, meant);
    }),
  );
});

test('a token costs the same at 100,000 as at 1,000', () => {
  const perToken = (tokens: number) => {
    const said = new SaidText();
    const start = performance.now();
    for (let i = 0; i < tokens; i += 1) said.token(' token');
    const ms = performance.now() - start;
    assert.equal(said.snapshot(' token'.repeat(tokens)), undefined);
    return ms / tokens;
  };
  perToken(100_000);
  const short = Math.min(...Array.from({ length: 20 }, () => perToken(1_000)));
  const long = Math.min(...Array.from({ length: 5 }, () => perToken(100_000)));
  // Ten times: far above noise, far below the hundredfold that copying would cost.
  assert.ok(long < short * 10 + 0.001, `${long} ms against ${short} ms`);
});
