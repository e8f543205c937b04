import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { checkHomeFormat, createHome, HOME_FORMAT, type Home, homePaths } from './home.ts';
import { lockHome } from './home-lock.ts';
import { commandLine } from './process-identity.ts';

function newHome(t: TestContext): Home {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const home = homePaths(join(folder, 'home'));
  createHome(home);
  return home;
}

test('a new home receives the format marker and is accepted again', t => {
  const home = newHome(t);
  checkHomeFormat(home);
  assert.equal(readFileSync(join(home.folder, 'format'), 'utf8'), `${HOME_FORMAT}\n`);
  checkHomeFormat(home);
});

test('data of another format, or without a marker, is an error that names the solution', t => {
  const home = newHome(t);
  writeFileSync(join(home.store, 'stream'), '');
  assert.throws(() => checkHomeFormat(home), { name: 'LaunchError', message: /has no format marker .*mv / });
  writeFileSync(join(home.folder, 'format'), '99\n');
  assert.throws(() => checkHomeFormat(home), {
    message: new RegExp(`has format "99" and this version reads format ${HOME_FORMAT}; move that folder away`),
  });
});

test('a home that is not writable is named in the error', t => {
  const home = newHome(t);
  assert.throws(() => createHome(homePaths(join(home.folder, 'format-file', '\0'))), {
    name: 'LaunchError',
    message: /cannot be written/,
  });
});

test('only its owner may read a home, even if several folders had to be created for it', t => {
  const { folder } = newHome(t);
  const deep = homePaths(join(folder, 'a/b/c'));
  createHome(deep);
  for (const home of [folder, deep.folder]) assert.equal(statSync(home).mode & 0o777, 0o700);
});

test('a home keeps one key for secrets of webhooks, which only its owner may read', t => {
  const home = newHome(t);
  const key = readFileSync(home.secretsKey, 'utf8');
  assert.equal(Buffer.from(key, 'base64').length, 32);
  assert.equal(statSync(home.secretsKey).mode & 0o777, 0o600);
  createHome(home);
  assert.equal(readFileSync(home.secretsKey, 'utf8'), key);
});

test('a home below /proc is refused with a clear error', { skip: process.platform !== 'linux' }, () => {
  assert.throws(() => createHome(homePaths('/proc/x')), {
    name: 'LaunchError',
    message: /^the home \/proc\/x cannot be written \(\w+\); choose another with HOPLINE_HOME$/,
  });
});

test('a second start on a home names the running process', t => {
  const { lockFile } = newHome(t);
  const unlock = lockHome(lockFile, 'http://127.0.0.1:8000/');
  assert.throws(() => lockHome(lockFile, 'http://127.0.0.1:8001/'), {
    name: 'LaunchError',
    message: new RegExp(`is already running in .* \\(http://127.0.0.1:8000/, process ${process.pid}\\)`),
  });
  unlock();
  lockHome(lockFile, 'http://127.0.0.1:8001/')();
});

test('the lock of an ended process is taken over, even if its id is reused or the file is truncated', t => {
  const { lockFile } = newHome(t);
  const stale = [
    { pid: 2 ** 22 + 1, command: 'node main.ts', url: '' },
    { pid: process.pid, command: 'another program that had this id', url: '' },
    // After a restart of a container every process gets the same id and command again.
    { pid: process.pid, command: commandLine(process.pid), startedAt: 'earlier', url: '' },
  ];
  for (const text of [...stale.map(holder => JSON.stringify(holder)), '', '{"pid":']) {
    writeFileSync(lockFile, text);
    const unlock = lockHome(lockFile, 'http://127.0.0.1:8000/');
    assert.equal(JSON.parse(readFileSync(lockFile, 'utf8')).url, 'http://127.0.0.1:8000/', text);
    unlock();
  }
});

test('the lock of an older version, which has no start time, is respected', t => {
  const { lockFile } = newHome(t);
  writeFileSync(lockFile, JSON.stringify({ pid: process.pid, command: commandLine(process.pid), url: '' }));
  assert.throws(() => lockHome(lockFile, ''), /is already running/);
});

test('an existing folder keeps its mode; only its owner may read the files that the home adds', t => {
  const { folder } = newHome(t);
  const shared = join(folder, 'shared');
  mkdirSync(shared, { mode: 0o755 });
  chmodSync(shared, 0o755);
  writeFileSync(join(shared, 'notes.txt'), '');
  const home = homePaths(shared);
  for (let start = 1; start <= 2; start += 1) {
    createHome(home);
    checkHomeFormat(home);
    assert.deepEqual(
      [shared, home.store, home.logs].map(path => statSync(path).mode & 0o777),
      [0o755, 0o700, 0o700],
    );
  }
});

test('releasing a lock does not remove the lock of another process', t => {
  const { lockFile } = newHome(t);
  const unlock = lockHome(lockFile, '');
  writeFileSync(lockFile, 'theirs');
  unlock();
  assert.equal(readFileSync(lockFile, 'utf8'), 'theirs');
});
