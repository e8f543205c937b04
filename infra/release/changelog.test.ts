import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextChangelog } from './changelog.ts';

test('the unreleased notes become the notes of the version, and an empty section begins', () => {
  const before = '# Changelog\n\n## Unreleased\n\n### Added\n- a thing\n\n## 0.1.0 - 2026-01-01\n\n- first\n';
  const { changelog, notes } = nextChangelog(before, '0.2.0', '2026-02-02');
  assert.equal(notes, '### Added\n- a thing');
  assert.equal(
    changelog,
    '# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-02-02\n\n### Added\n- a thing\n\n## 0.1.0 - 2026-01-01\n\n- first\n',
  );
});

test('unreleased notes at the end of the changelog are taken completely', () => {
  const { changelog } = nextChangelog('## Unreleased\n- a\n', '1.0.0', '2026-02-02');
  assert.equal(changelog, '## Unreleased\n\n## 1.0.0 - 2026-02-02\n\n- a\n\n');
});

test('a release without notes is refused', () => {
  for (const text of ['', '## 0.1.0\n- a\n', '## Unreleased\n\n## 0.1.0\n- a\n'])
    assert.throws(() => nextChangelog(text, '1.0.0', '2026-02-02'), /no notes/);
});
