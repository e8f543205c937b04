import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pageKey } from './console-page.mjs';

test('the page of the console is rebuilt exactly when one of its sources changes', t => {
  const root = mkdtempSync(join(tmpdir(), 'console-page-'));
  t.after(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, 'services/console/app/public'), { recursive: true });
  mkdirSync(join(root, 'services/relay'), { recursive: true });
  writeFileSync(join(root, 'services/console/app/main.tsx'), 'a');
  const key = pageKey(root);
  writeFileSync(join(root, 'services/relay/main.ts'), 'a');
  assert.equal(pageKey(root), key);
  writeFileSync(join(root, 'services/console/app/public/icon.svg'), 'a');
  const withIcon = pageKey(root);
  assert.notEqual(withIcon, key);
  writeFileSync(join(root, 'services/console/app/main.tsx'), 'b');
  assert.notEqual(pageKey(root), withIcon);
});
