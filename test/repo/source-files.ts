import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Paths of the project's files: tracked files, and new ones that are not ignored. Excludes deleted files. */
export function projectFiles(): string[] {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--deduplicate'], { cwd: ROOT, encoding: 'utf8' });
  const removed = new Set(execFileSync('git', ['ls-files', '-d'], { cwd: ROOT, encoding: 'utf8' }).split('\n'));
  return listed.split('\n').filter(path => path !== '' && !removed.has(path));
}

export const read = (path: string): string => readFileSync(`${ROOT}${path}`, 'utf8');

/** True for tests, test kits and everything below `test`. */
export const isTest = (path: string): boolean => path.startsWith('test/') || /\.(test|test-[a-z]+)\.ts$/.test(basename(path));

/** Modules that a file imports or re-exports, statically or dynamically. */
export function importsOf(path: string): string[] {
  const text = read(path);
  const found = text.matchAll(
    /(?:^|\s)(?:import|export)\s[^'"`;]*?from\s+['"]([^'"]+)['"]|(?:^|\s)import\s+['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]/g,
  );
  return [...found].map(match => (match[1] ?? match[2] ?? match[3])!);
}
