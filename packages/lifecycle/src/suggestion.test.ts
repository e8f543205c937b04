import assert from 'node:assert/strict';
import { test } from 'node:test';
import { suggestion } from './suggestion.ts';

test('a known name is suggested only for a name that resembles it', () => {
  const known = ['path', 'forwardText', 'silenceMsMax'];
  for (const [unknown, word] of [
    ['pth', 'path'],
    ['fowardText', 'forwardText'],
    ['forwardtext', 'forwardText'],
    ['silenceMs', 'silenceMsMax'],
    ['paht', 'path'],
  ] as const)
    assert.equal(suggestion(unknown, known), `; did you mean ${word}?`);
  for (const unknown of ['colour', 'x', '']) assert.equal(suggestion(unknown, known), '');
  assert.equal(suggestion('path', []), '');
});
