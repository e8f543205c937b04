import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { settingsDocument } from './settings-document.ts';
import { projectFiles, ROOT, read } from './source-files.ts';

test('infra/SETTINGS.md is up to date', () => {
  assert.equal(read('infra/SETTINGS.md'), settingsDocument(), 'run: node test/repo/write-settings.ts');
});

test('links between documents lead to existing files', () => {
  for (const path of projectFiles().filter(file => file.endsWith('.md'))) {
    for (const [, target] of read(path).matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)) {
      assert.ok(existsSync(join(ROOT, dirname(path), target!)), `${path} links to ${target}`);
    }
  }
});

test('tests that the README names exist', () => {
  const named = [...read('README.md').matchAll(/`((?:test|packages|services)\/[\w./-]+\.test\.ts)`/g)].map(match => match[1]!);
  assert.ok(named.length > 5);
  for (const path of named) assert.ok(existsSync(join(ROOT, path)), path);
});
