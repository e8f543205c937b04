import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { WATCHED_FILE_BYTES_MAX, WatchedFile } from './watched-file.ts';

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'hopline-file-'));
  t.after(() => rm(path, { recursive: true }));
  return path;
}

function parse(text: string): string {
  if (!text.startsWith('ok ')) throw new Error('it does not begin with ok');
  return text.slice(3);
}

test('after a write, replacement or removal the last valid content applies, and each fault is reported once', async t => {
  const path = join(await folder(t), 'keys');
  await writeFile(path, 'ok 1');
  const faults: string[] = [];
  const file = await WatchedFile.open({ path, parse, recheckMs: 0, onFault: reason => faults.push(reason) });
  assert.equal(await file.current(), '1');
  await writeFile(path, 'ok 22');
  assert.equal(await file.current(), '22');
  await writeFile(`${path}.new`, 'ok 33');
  await rename(`${path}.new`, path);
  assert.equal(await file.current(), '33');
  await writeFile(path, 'secret');
  assert.deepEqual([await file.current(), await file.current()], ['33', '33']);
  assert.deepEqual(faults, ['it does not begin with ok']);
  await assert.rejects(file.check(), { name: 'previous_content_in_use' });
  await rm(path);
  assert.deepEqual([await file.current(), await file.current()], ['33', '33']);
  assert.deepEqual(faults.slice(1), ['the file cannot be read (ENOENT)']);
  await writeFile(path, 'ok 4');
  assert.equal(await file.current(), '4');
  await file.check();
});

test('a file is not checked more often than its interval', async t => {
  const path = join(await folder(t), 'keys');
  await writeFile(path, 'ok 1');
  const file = await WatchedFile.open({ path, parse, recheckMs: 600_000, onFault: assert.fail });
  await writeFile(path, 'ok 22');
  assert.equal(await file.current(), '1');
});

test('open rejects a file that is absent, invalid or larger than WATCHED_FILE_BYTES_MAX', async t => {
  const path = join(await folder(t), 'keys');
  const open = () => WatchedFile.open({ path, parse, onFault: assert.fail });
  await assert.rejects(open(), /cannot be read \(ENOENT\)/);
  await writeFile(path, 'no');
  await assert.rejects(open(), /does not begin with ok/);
  await writeFile(path, `ok ${'x'.repeat(WATCHED_FILE_BYTES_MAX - 3)}`);
  await open();
  await writeFile(path, `ok ${'x'.repeat(WATCHED_FILE_BYTES_MAX - 2)}`);
  await assert.rejects(open(), /larger than 1048576 bytes/);
});
