import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endsWord } from './input-method.ts';

test('Enter within a word of an input method does not send, even in Safari, where the word has already ended', () => {
  assert.ok(endsWord({ isComposing: true, keyCode: 13 }));
  assert.ok(endsWord({ isComposing: false, keyCode: 229 }));
  assert.ok(!endsWord({ isComposing: false, keyCode: 13 }));
});
