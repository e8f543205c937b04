import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const USAGE = `node test/kubernetes/version-before.ts COMMIT FOLDER

Builds what the tests of upgrades start from: FOLDER/hopline.tar, the image of that commit as \`hopline:before\`, and FOLDER/chart.
Load the image into the cluster and run the tests with HOPLINE_BEFORE=FOLDER.`;

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NAME = 'hopline:before';

const [commit, folder] = process.argv.slice(2);
if (commit === undefined || folder === undefined) throw new Error(USAGE);
const target = resolve(folder);
const work = mkdtempSync(join(tmpdir(), 'hopline-before-'));
const tree = join(work, 'tree');
try {
  execFileSync('git', ['worktree', 'add', '--detach', tree, commit], { cwd: ROOT, stdio: 'inherit' });
  mkdirSync(target, { recursive: true });
  execFileSync('npm', ['run', 'image', '--', '--archive', join(work, 'image.tar')], { cwd: tree, stdio: 'inherit' });
  rename(join(work, 'image.tar'), join(target, 'hopline.tar'));
  cpSync(join(tree, 'infra/helm/hopline'), join(target, 'chart'), { recursive: true });
} finally {
  execFileSync('git', ['worktree', 'remove', '--force', tree], { cwd: ROOT, stdio: 'inherit' });
  rmSync(work, { recursive: true, force: true });
}

/**
 * Until a release, the images of both versions have the version of package.json as their tag, but in a cluster one name can stand for only
 * one image.
 */
function rename(from: string, to: string): void {
  const files = join(work, 'image');
  mkdirSync(files);
  execFileSync('tar', ['-xf', from, '-C', files]);
  const path = join(files, 'manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify(manifest.map((image: object) => ({ ...image, RepoTags: [NAME] }))));
  execFileSync('tar', ['-cf', to, '-C', files, '.']);
}
