import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { withFolderLock } from './folder-lock.mjs';

function temporaryFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('only one process at a time holds the lock, and it is removed afterwards', async t => {
  const lock = join(temporaryFolder(t), 'deep', 'lock');
  let inside = 0;
  let most = 0;
  const work = async () => {
    inside += 1;
    most = Math.max(most, inside);
    await sleep(20);
    inside -= 1;
  };
  await Promise.all([withFolderLock(lock, work), withFolderLock(lock, work), withFolderLock(lock, work)]);
  assert.equal(most, 1);
  assert.ok(!existsSync(lock));
});

test('work that fails releases the lock', async t => {
  const lock = join(temporaryFolder(t), 'lock');
  await assert.rejects(
    withFolderLock(lock, async () => {
      throw new Error('no disk');
    }),
    /no disk/,
  );
  assert.ok(!existsSync(lock));
});

test('the lock of an ended process is taken over, even one without a pid', async t => {
  const folder = temporaryFolder(t);
  const signed = join(folder, 'signed');
  mkdirSync(signed);
  writeFileSync(join(signed, 'pid'), '4711');
  assert.equal(await withFolderLock(signed, async () => 'mine', { isAlive: () => false }), 'mine');

  const unsigned = join(folder, 'unsigned');
  mkdirSync(unsigned);
  const longAgo = Date.now() / 1000 - 60;
  utimesSync(unsigned, longAgo, longAgo);
  assert.equal(await withFolderLock(unsigned, async () => 'mine'), 'mine');
});

test('a lock with the id of this process, which does not hold it, belongs to an ended process', async t => {
  const lock = join(temporaryFolder(t), 'lock');
  mkdirSync(lock);
  writeFileSync(join(lock, 'pid'), String(process.pid));
  assert.equal(await withFolderLock(lock, async () => 'mine', { waitMsMax: 1 }), 'mine');
});

test('a lock of a running process is waited for, then named in the error', async t => {
  const lock = join(temporaryFolder(t), 'lock');
  mkdirSync(lock);
  writeFileSync(join(lock, 'pid'), String(process.ppid));
  await assert.rejects(
    withFolderLock(lock, async () => {}, { waitMsMax: 1 }),
    { name: 'SetupError', message: /another set-up has held/ },
  );
});
