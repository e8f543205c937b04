import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fitsModes, outputModesOf } from './media-types.ts';

const CARD = ['text/plain', 'application/json'];

test('accepted modes match when one of them is offered [S4-38]', () => {
  const fitting = [
    ['text/plain'],
    ['TEXT/Plain; charset=utf-8'],
    ['image/png', 'application/json;q=0.5'],
    ['text/*'],
    ['*/*'],
    ['*'],
    ['text'],
    ['data'],
    ['file'],
    [' text/plain '],
  ];
  for (const accepted of fitting) assert.equal(fitsModes(accepted, CARD), true, String(accepted));
  const unfitting = [['image/png'], ['text/html', 'audio/*'], ['application/jsonx'], ['/'], ['', 'textplain']];
  for (const accepted of unfitting) assert.equal(fitsModes(accepted, CARD), false, String(accepted));
  assert.equal(fitsModes(['image/png'], ['image/*']), true);
  assert.equal(fitsModes(['image/png'], ['*/*']), true);
});

test('an empty list on either side matches everything [S4-38]', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), modes => {
      assert.equal(fitsModes(undefined, modes), true);
      assert.equal(fitsModes([], modes), true);
      assert.equal(fitsModes(['', ' '], modes), true);
      assert.equal(fitsModes(modes, []), true);
    }),
  );
});

test('matching is symmetric, and every list matches itself [S4-38]', () => {
  const mode = fc
    .tuple(fc.constantFrom('text', 'image', '*'), fc.constantFrom('plain', 'png', '*'))
    .map(parts => parts.join('/'));
  const modes = fc.array(mode, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(modes, modes, (one, other) => {
      assert.equal(fitsModes(one, other), fitsModes(other, one));
      assert.equal(fitsModes(one, one), true);
      assert.equal(fitsModes([...one, '*/*'], other), true);
    }),
  );
});

test('the output modes of a card are its default modes and the modes of its skills', () => {
  const skills = [{}, { outputModes: ['image/png', 'text/plain'] }, { outputModes: [] }];
  assert.deepEqual(outputModesOf({ defaultOutputModes: ['text/plain'], skills }), ['text/plain', 'image/png']);
});

test('a mode may have the name of an inherited property [S4-38]', () => {
  for (const mode of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
    assert.equal(fitsModes([mode], ['text/plain']), false, mode);
    assert.equal(fitsModes(['text/plain'], [mode]), false, mode);
  }
});
