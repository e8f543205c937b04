import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Files of this repository that a release changes or needs. */
const COPIED = [
  'infra/release/release.ts',
  'infra/release/changelog.ts',
  'infra/release/package.json',
  'infra/compose/compose.yaml',
  'infra/helm/hopline/Chart.yaml',
  'infra/helm/hopline-agent/Chart.yaml',
  'packages/python/pyproject.toml',
];

/** A repository with these files, at version 0.1.0 with notes. */
function repository(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-release-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const path of COPIED) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(ROOT, path), join(folder, path));
  }
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ name: 'hopline', version, type: 'module' }, undefined, 2)}\n`);
  writeFileSync(join(folder, 'CHANGELOG.md'), '# Changelog\n\n## Unreleased\n\n### Added\n- a thing\n');
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim();
  git('init', '--quiet');
  git('config', 'user.name', 'test');
  git('config', 'user.email', 'test@example.com');
  git('add', '.');
  git('commit', '--quiet', '--message', 'first');
  const release = (...args: string[]) =>
    spawnSync(process.execPath, [join(folder, 'infra/release/release.ts'), ...args], { encoding: 'utf8' });
  return { git, release, version, read: (path: string) => readFileSync(join(folder, path), 'utf8') };
}

test('a release sets the version of every manifest, chart and image, and commits and tags it', t => {
  const { git, release, version, read } = repository(t);
  const { status, stderr, stdout } = release('9.8.7');
  assert.equal(status, 0, stderr);
  assert.match(stdout, /a thing/);
  assert.equal(JSON.parse(read('package.json')).version, '9.8.7');
  assert.match(read('packages/python/pyproject.toml'), /^version = "9\.8\.7"$/m);
  for (const chart of ['hopline', 'hopline-agent']) {
    const text = read(`infra/helm/${chart}/Chart.yaml`);
    assert.match(text, /^version: 9\.8\.7$/m);
    assert.match(text, /^appVersion: "9\.8\.7"$/m);
    assert.equal(text.replaceAll('9.8.7', version), readFileSync(join(ROOT, `infra/helm/${chart}/Chart.yaml`), 'utf8'));
  }
  assert.match(read('infra/compose/compose.yaml'), /hopline:\$\{HOPLINE_VERSION:-9\.8\.7\}/);
  assert.equal(git('status', '--porcelain'), '');
  assert.equal(git('log', '-1', '--format=%s'), 'release: 9.8.7');
  assert.match(git('tag', '--list', '-n1'), /^v9\.8\.7 +Hopline 9\.8\.7/);
  assert.deepEqual(git('diff', '--name-only', 'HEAD~1').split('\n').sort(), [
    'CHANGELOG.md',
    'infra/compose/compose.yaml',
    'infra/helm/hopline-agent/Chart.yaml',
    'infra/helm/hopline/Chart.yaml',
    'infra/release/package.json',
    'package.json',
    'packages/python/pyproject.toml',
  ]);
});

test('an invalid version, a changed tree or an existing tag changes nothing', t => {
  const { git, release } = repository(t);
  const refused = (message: RegExp, ...args: string[]) => {
    const { status, stderr } = release(...args);
    assert.equal(status, 1);
    assert.match(stderr, message);
    assert.equal(git('log', '--format=%s'), 'first');
  };
  refused(/npm run release -- VERSION/);
  refused(/npm run release -- VERSION/, 'v1.0.0');
  git('tag', 'v1.0.0');
  refused(/the tag v1\.0\.0 exists already/, '1.0.0');
  git('rm', '--quiet', '--cached', 'CHANGELOG.md');
  refused(/the working tree has changes/, '2.0.0');
});
