import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { cachedFolder, toolCacheFolder } from './tool-cache.mjs';

function temporaryFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('tools are stored per user, or in the checkout if that is not writable', t => {
  const home = temporaryFolder(t);
  assert.equal(toolCacheFolder('/checkout', { HOME: home }), join(home, '.cache', 'hopline'));
  assert.equal(toolCacheFolder('/checkout', { HOME: home, XDG_CACHE_HOME: join(home, 'xdg') }), join(home, 'xdg', 'hopline'));
  writeFileSync(join(home, 'file'), '');
  assert.equal(toolCacheFolder('/checkout', { HOME: join(home, 'file') }), '/checkout/.hopline/tools');
});

test('two concurrent callers fill a folder once', async t => {
  const cache = temporaryFolder(t);
  let fills = 0;
  const fill = async folder => {
    fills += 1;
    writeFileSync(join(folder, 'tool'), 'whole');
  };
  const [first, second] = await Promise.all([cachedFolder(cache, 'tool-1', fill), cachedFolder(cache, 'tool-1', fill)]);
  assert.equal(first, second);
  assert.equal(fills, 1);
  assert.deepEqual(readdirSync(cache), ['tool-1']);
});

test('a failed fill leaves no files, and the next one starts over', async t => {
  const cache = temporaryFolder(t);
  const broken = async folder => {
    writeFileSync(join(folder, 'half'), '');
    throw new Error('refused');
  };
  await assert.rejects(cachedFolder(cache, 'tool-1', broken), /refused/);
  assert.deepEqual(readdirSync(cache), []);
  const folder = await cachedFolder(cache, 'tool-1', async part => chmodSync(part, 0o700));
  assert.ok(existsSync(folder));
});
