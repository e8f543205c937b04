import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { bytesAllocated } from '../../../test/support/counted-work.ts';
import { PlanParser, splitPlan } from './plan.ts';

function runs(...tokens: string[]): string[] {
  const reader = new PlanParser();
  return [...tokens.flatMap(token => reader.take(token)), ...reader.end()].map(({ kind, text }) => `${kind}:${text}`);
}

test('the plan is sent token by token with its markers, wherever the text is split into tokens [S0-11]', () => {
  assert.deepEqual(runs('⟦', '1. ', 'Argo', '⟧'), ['plan:⟦', 'plan:1. ', 'plan:Argo', 'plan:⟧']);
  assert.deepEqual(runs('Sure. ⟦a⟧ So', ' be it'), ['prose:Sure. ', 'plan:⟦', 'plan:a⟧', 'prose: So', 'prose: be it']);
  assert.deepEqual(runs('no plan', ' needed'), ['prose:no plan', 'prose: needed']);
});

test('white space around the plan is layout; between words it is text', () => {
  assert.deepEqual(runs('\n', '⟦p⟧', '\n', '\n'), ['plan:⟦', 'plan:p⟧']);
  assert.deepEqual(runs('⟦p⟧', '\n', '\n', 'Now', ' ', '\n'), ['plan:⟦', 'plan:p⟧', 'prose:\n\nNow', 'prose: ', 'prose:\n']);
  assert.deepEqual(runs(' ', '\n'), []);
});

test('white space before the words is not copied with each token', async () => {
  const parser = new PlanParser();
  const tokens = 30_000;
  const bytes = await bytesAllocated(() => {
    for (let index = 0; index < tokens; index += 1) parser.take(' ');
  });
  // Copying the text for each token would allocate 450 MB in total.
  assert.ok(bytes < 50_000_000, `${bytes} bytes`);
  assert.deepEqual(parser.take('Now'), [{ kind: 'prose', text: `${' '.repeat(tokens)}Now` }]);
});

test('a plan that the model does not close is closed; a second plan is text', () => {
  assert.deepEqual(runs('⟦p'), ['plan:⟦', 'plan:p', 'plan:⟧']);
  assert.deepEqual(runs('⟦p⟧ see ⟦q⟧'), ['plan:⟦', 'plan:p⟧', 'prose: see ⟦q⟧']);
});

test('the same text results however the input was split', () => {
  const piece = fc.constantFrom('⟦', '⟧', ' ', '\n', 'a', 'plan ', '✅');
  fc.assert(
    fc.property(fc.array(piece), fc.array(fc.nat(3)), (pieces, cuts) => {
      const text = pieces.join('');
      const reader = new PlanParser();
      const split = { plan: '', prose: '' };
      const tokens: string[] = [];
      for (let at = 0, turn = 0; at < text.length; turn += 1) {
        const to = at + (cuts[turn % Math.max(1, cuts.length)] ?? 0) + 1;
        tokens.push(text.slice(at, to));
        at = to;
      }
      for (const run of [...tokens.flatMap(token => reader.take(token)), ...reader.end()]) split[run.kind] += run.text;
      assert.deepEqual(split, splitPlan(text));
    }),
  );
});
