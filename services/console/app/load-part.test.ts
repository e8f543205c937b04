import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadPart } from './load-part.ts';

test('a tab that was open during an update of the console asks for a reload', async () => {
  assert.equal(await loadPart(Promise.resolve(1)), 1);
  const missing = Promise.reject(
    new TypeError('Failed to fetch dynamically imported module: https://console.example/assets/a.js'),
  );
  await assert.rejects(
    loadPart(missing),
    /^Error: A part of this page cannot be loaded\. If the console was updated, reload the page\.$/,
  );
});
