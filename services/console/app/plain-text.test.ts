import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ageText, excerpt, positionText, visibleText } from './plain-text.ts';

test('characters that hide or reorder text are shown as codes; other scripts, tabs and line ends are kept', () => {
  assert.equal(visibleText('invoice\u202Egnp.exe'), 'invoice⟪U+202E⟫gnp.exe');
  assert.equal(visibleText('a\u0000b\u001b[31mc\u2066d'), 'a⟪U+0000⟫b⟪U+001B⟫[31mc⟪U+2066⟫d');
  const plain = 'שלום, 你好 👩‍👩‍👧 <b>\t&amp;\n';
  assert.equal(visibleText(plain), plain);
  assert.equal(visibleText('a\r\nb'), 'a\nb');
});

test('an excerpt is one line, cut between characters', () => {
  assert.equal(excerpt(' a\n b ', 10), 'a b');
  assert.equal(excerpt('🎯'.repeat(5), 5), '🎯'.repeat(5));
  assert.equal(excerpt('🎯'.repeat(6), 5), `${'🎯'.repeat(4)}…`);
});

test('times are short, and never in the future', () => {
  const now = Date.parse('2026-01-02T00:00:00Z');
  assert.equal(ageText('2026-01-01T23:59:30Z', now), '30 s ago');
  assert.equal(ageText('2026-01-01T00:00:00Z', now), '1 d ago');
  assert.equal(ageText('2026-01-02T00:01:00Z', now), 'now');
  assert.equal(ageText(undefined, now), '');
  assert.equal(positionText(67_340), '1:07.3');
});
