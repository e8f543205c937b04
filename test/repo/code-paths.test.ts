import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type CodePath, filesOf, MESSAGE_PATH, type PathStep, TOKEN_PATH } from './code-paths.ts';
import { CODE_PATHS_DOCUMENT, markedSection, sectionOf } from './code-paths-document.ts';
import { filesImportedBy } from './imports.ts';
import { ROOT, read } from './source-files.ts';

const areConnected = (a: string, b: string): boolean => filesImportedBy(a).has(b) || filesImportedBy(b).has(a);

/** Connections between steps that the code does not have. */
function missing(before: PathStep, { file, via = [], over }: PathStep): string[] {
  if (over !== undefined) {
    const isLog = [before.file, file].every(path => path.startsWith('packages/log-jetstream/'));
    return isLog ? [] : [`${before.file} -> ${file} hands over through ${over}: both must be files of log-jetstream`];
  }
  const chain = [before.file, ...via, file];
  return chain.slice(1).flatMap((next, index) => (areConnected(chain[index]!, next) ? [] : [`${chain[index]} -> ${next}`]));
}

function checkPath(path: CodePath): void {
  const named = path.steps.flatMap(({ file, via = [] }) => [file, ...via]);
  assert.deepEqual(
    named.filter(file => !existsSync(join(ROOT, file))),
    [],
    'files that do not exist: update test/repo/code-paths.ts',
  );
  assert.deepEqual(
    path.steps.slice(1).flatMap((step, index) => missing(path.steps[index]!, step)),
    [],
    'steps without an import between their files: update test/repo/code-paths.ts',
  );
}

test('path of a message: every file exists and is connected with the previous one', () => checkPath(MESSAGE_PATH));

for (const path of [TOKEN_PATH, MESSAGE_PATH]) {
  test(`path of a ${path.name}: at most ${path.filesMax} files`, t => {
    const { length } = filesOf(path);
    t.diagnostic(`files on the path of a ${path.name}: ${length}`);
    assert.ok(length <= path.filesMax, `${length} files`);
  });

  test(`path of a ${path.name}: the section of ${CODE_PATHS_DOCUMENT} is up to date`, () => {
    assert.equal(markedSection(read(CODE_PATHS_DOCUMENT), path.name), sectionOf(path), 'run: node test/repo/write-code-paths.ts');
  });
}

test('an import from a package is followed through its index, and files without an import are reported', () => {
  const [shard, inputLog, sse] = ['services/relay/src/shard.ts', 'packages/log/src/input-log.ts', 'packages/a2a/src/sse.ts'];
  assert.deepEqual(missing({ file: shard, does: '' }, { file: inputLog, does: '' }), []);
  assert.deepEqual(missing({ file: shard, does: '' }, { file: sse, does: '' }), [`${shard} -> ${sse}`]);
  assert.equal(missing({ file: shard, does: '' }, { file: inputLog, does: '', over: 'a2a.raw' }).length, 1);
});
