import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ENTRY_POINTS } from './api-reference.ts';
import { PUBLIC_PACKAGES, publicEntries } from './public-packages.ts';

test('the published entries of the client and the agent kit match the API reference', () => {
  const published = PUBLIC_PACKAGES.slice(0, 2).flatMap(target => {
    const manifest = new URL(`../../${target.folder}/package.json`, import.meta.url);
    const { exports } = JSON.parse(readFileSync(manifest, 'utf8')) as { exports: Record<string, string> };
    return publicEntries(target, exports).map(([, path]) => path.replace('.', target.folder));
  });
  assert.deepEqual(published.toSorted(), ENTRY_POINTS.toSorted());
  const [client] = PUBLIC_PACKAGES;
  assert.throws(() => publicEntries(client, { '.': './src/index.ts' }), /packages\/client has no entry \.\/approval-response/);
});
