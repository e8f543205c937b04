import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nextChangelog } from './changelog.ts';

const USAGE =
  'npm run release -- VERSION   e.g. 0.2.0: sets the version, dates the changelog, commits, tags and prints the release notes\n' +
  'npm run release -- --dry-run  makes everything that is published, as `npm run dry-run` does';
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Files that contain the version, each with the text before and after it. */
const VERSIONS: Record<string, RegExp> = {
  '**/package.json': /^( {2}"version": ")[^"]*(")/m,
  'packages/python/pyproject.toml': /^(version = ")[^"]*(")/m,
  'infra/helm/*/Chart.yaml': /^(version: |appVersion: ")[^"\n]*("?)$/gm,
  'infra/compose/compose.yaml': /(image: hopline:\$\{HOPLINE_VERSION:-)[^}]*(\})/g,
};

/** Prepares a release on this machine. Pushing and publishing are the owner's decision. */
function release(version: string | undefined): void {
  if (version === undefined || !/^\d+\.\d+\.\d+(-[0-9a-z.]+)?$/.test(version)) throw new Error(USAGE);
  if (git('status', '--porcelain') !== '') throw new Error('the working tree has changes: commit or stash them first');
  if (git('tag', '--list', `v${version}`) !== '') throw new Error(`the tag v${version} exists already`);
  const today = new Date().toISOString().slice(0, 10);
  const { changelog, notes } = nextChangelog(read('CHANGELOG.md'), version, today);
  write('CHANGELOG.md', changelog);
  // The root has the version; a test compares every other package.json with it.
  const changed = Object.entries(VERSIONS).flatMap(([pattern, before]) => {
    const paths = git('ls-files', '--', `:(glob)${pattern}`).split('\n');
    for (const path of paths) write(path, read(path).replace(before, `$1${version}$2`));
    return paths;
  });
  git('commit', '--quiet', '--message', `release: ${version}`, '--', 'CHANGELOG.md', ...changed);
  git('tag', '--annotate', `v${version}`, '--message', `Hopline ${version}\n\n${notes}`);
  console.log(
    `${notes}\n\nCommitted and tagged as v${version}. Next: npm run pack, git push --follow-tags, npm publish each tarball.`,
  );
}

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const write = (path: string, text: string): void => writeFileSync(join(ROOT, path), text);

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
}

try {
  release(process.argv[2]);
} catch (error) {
  console.error(`hopline: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
