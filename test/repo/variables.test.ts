import assert from 'node:assert/strict';
import { test } from 'node:test';
import SETTING_NAMES from '../../packages/lifecycle/src/setting-names.json' with { type: 'json' };
import { OTHER_VARIABLES } from '../../packages/lifecycle/src/unknown-settings.ts';
import { projectFiles, read } from './source-files.ts';

const USE = /(?:\benv(?:ironment)?(?:\.|\[')|\$\{)(HOPLINE_[A-Z_]+)\b/g;
const files = projectFiles().filter(path => /\.(ts|mjs|js|yaml)$/.test(path));

test('every HOPLINE_ variable that a program reads is a setting, or a known variable of another program', () => {
  const known = new Set([...SETTING_NAMES, ...OTHER_VARIABLES]);
  for (const path of files.filter(file => !/\.test\.ts$/.test(file))) {
    for (const [, name] of read(path).matchAll(USE))
      assert.ok(known.has(name!), `${name} of ${path}: a service that inherits it would not start`);
  }
});

test('every listed variable of another program is used somewhere', () => {
  const others = files.filter(path => !path.includes('lifecycle/src/unknown-settings'));
  const text = others.map(read).join('\n');
  for (const name of OTHER_VARIABLES) assert.match(text, new RegExp(`\\b${name}\\b`));
});
